"""Hands: composes the parts into programs and starts them."""
