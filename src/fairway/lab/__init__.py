"""The load lab: experiments on a platform of its own, through the front door only."""
