"""The streams of one tenant in one pool, and which of them goes next."""

from __future__ import annotations

from collections.abc import Iterable, Set

from fairway.core.backlog import deferred
from fairway.core.backlog.deferred import Crowd
from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.lanes import LaneShare
from fairway.core.backlog.priority import StreamGroup
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.job import weight_bytes


class Unsettled:
    """Streams whose holds changed and that nobody has looked at since: nothing of them starts."""

    __slots__ = ("_types", "left")

    def __init__(self) -> None:
        self._types: Set[TypeId] = frozenset()
        self.left: dict[Stream, None] = {}

    def add(self, types: Set[TypeId], streams: Iterable[Stream]) -> None:
        """Holds of these types changed; 0: of all. There may be very many streams: no loop."""
        self._types = self._types | types
        self.left |= dict.fromkeys(streams)

    def is_about(self, stream: Stream) -> bool:
        return 0 in self._types or stream.type in self._types


class TenantBacklog:
    __slots__ = (
        "_group",
        "crowd",
        "depth",
        "lanes",
        "only",
        "parked",
        "ready",
        "streams",
        "unsettled",
    )

    def __init__(self) -> None:
        self.streams: dict[StreamKey, Stream] = {}
        self._group = StreamGroup()  # the same streams, as long as there are no lanes
        self.only: Stream | None = None  # when there is one and no lanes: the usual case
        self.lanes: LaneShare | None = None  # only once a job with a fair_key came
        self.crowd: Crowd | None = None  # while some of its streams have no place here
        self.unsettled: Unsettled | None = None  # since holds changed
        self.ready = 0  # jobs in all windows
        self.parked = 0  # jobs that wait for a place under a key
        self.depth = 0  # jobs queued, here and in the store: a count kept, not a count taken

    @property
    def has_room(self) -> bool:
        return len(self.streams) < deferred.STREAMS_MAX

    def has_place(self) -> bool:
        """For a stream that is not here; in a crowd it waits for its turn."""
        if self.crowd is None and self.has_room:
            return True
        self.crowd = self.crowd or Crowd()
        self.crowd.has_left_out = True
        return False

    def lets_in(self, key: StreamKey, *, may_run: bool) -> bool:
        """As `has_place`, for one that the sweep met; what must not start takes no place then."""
        if self.crowd is None:
            return self.has_place()
        return self.crowd.lets_in(key, has_room=may_run and self.has_room)

    def round_over(self) -> None:
        """The sweep met every stream that has work."""
        if self.crowd is not None:
            if self.crowd.has_left_out:
                self.crowd.next_round(has_room=self.has_room)
            else:
                self.crowd = None

    def new_stream(self, key: StreamKey, shard: ShardId) -> Stream:
        made = self.streams[key] = Stream(key, shard)
        if self.lanes is not None:
            self.lanes.add(made)
        elif key.lane:
            self._group = StreamGroup()
            self.lanes = LaneShare()
            for stream in self.streams.values():
                self.lanes.add(stream)
                if stream.window:
                    self.lanes.wake(stream, 0)
        else:
            self._group.add(made)
        self._find_only()
        return made

    def _find_only(self) -> None:
        is_one = len(self.streams) == 1 and self.lanes is None
        self.only = next(iter(self.streams.values())) if is_one else None

    def next_stream(self, firsts: Firsts, now_us: int) -> Stream | None:
        if self.lanes is not None:
            return self.lanes.next_stream(firsts, now_us)
        return firsts.of(self._group)

    def drop(self, stream: Stream) -> None:
        del self.streams[stream.key]
        if self.lanes is not None:
            self.lanes.drop(stream)
        else:
            self._group.drop(stream)
        self._find_only()

    def bytes_ready(self) -> int:
        """Of the jobs in all windows; counted, so not for every job."""
        return sum(weight_bytes(job) for s in self.streams.values() for job in s.window)

    @property
    def is_all_here(self) -> bool:
        """Whether its windows have all that waits: what was counted in the store says no more."""
        if self.crowd is not None:
            return False
        return not any(stream.more or stream.reading for stream in self.streams.values())

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is worth keeping."""
        if self.streams or self.crowd is not None or self.parked:
            return False
        return self.lanes is None or self.lanes.is_quiet


#: By (pool, tenant): every one with streams here.
TenantBacklogs = dict[tuple[PoolId, TenantId], TenantBacklog]
