"""Statements on what servers saw: minutes and hours of history, and each server's latest look.

Here: one module for each file of statements, as beside this package.
Not here: usage that is billed (`billing/`); merging what servers wrote (`core/insight`).
"""
