"""What can go wrong, drawn as a tree; each error owns a stable code and says what to do.

    FairwayError
    ├── Refused                 the caller asked for something we will not do
    │   ├── InvalidRequest      a field is missing, malformed or out of range
    │   ├── NotFound            no such thing for this caller
    │   ├── Gone                it was there, and will not come back by itself
    │   ├── Forbidden           the key may not do this
    │   ├── Conflict            the thing is not in a state that allows it
    │   └── LimitReached        a limit of the tenant's; carries when to come back
    └── Unavailable             we cannot do it now; try again

HTTP statuses are decided in `wire/problems.py`, never here. The docstring is the default message.
"""

from __future__ import annotations

from typing import Self

from fairway.core.backpressure.rate_limit import Quota


class FairwayError(Exception):
    """Something went wrong in Fairway."""

    code = "INTERNAL"

    def __init__(self, message: str = "", *, code: str = "", field: str = "") -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.code = code or type(self).code
        self.field = field  # JSON pointer of the offending field, when there is one
        super().__init__(self.message)

    def as_value(self) -> Self:
        """The same, for whoever keeps or answers it: what was said, without the way it came.

        That leads to every frame on it, and they to all that they hold: requests, whole batches,
        often this very error. Nobody but the collector would find such a circle.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class Refused(FairwayError):
    """The request was refused."""

    code = "REFUSED"


class InvalidRequest(Refused):
    """The request is not valid."""

    code = "INVALID_REQUEST"


class NotFound(Refused):
    """There is no such thing."""

    code = "NOT_FOUND"


class Gone(Refused):
    """It is no longer there."""

    code = "OBJECT_GONE"


class Forbidden(Refused):
    """This key may not do that."""

    code = "FORBIDDEN"


class Conflict(Refused):
    """The state of the thing does not allow that."""

    code = "CONFLICT"


class LimitReached(Refused):
    """A limit was reached; try again later."""

    code = "LIMIT_REACHED"

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        field: str = "",
        retry_after_seconds: float = 1,
        quota: Quota | None = None,
    ) -> None:
        super().__init__(message, code=code, field=field)
        self.retry_after_seconds = retry_after_seconds
        self.quota = quota


class Unavailable(FairwayError):
    """The service cannot do this right now; try again shortly."""

    code = "UNAVAILABLE"
    retry_after_seconds: float = 1
