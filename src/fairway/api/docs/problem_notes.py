"""What each problem code means and what to do about it; a test holds it against the codes."""

from __future__ import annotations

from typing import NamedTuple


class ProblemNote(NamedTuple):
    meaning: str
    remedy: str


PROBLEM_NOTES: dict[str, ProblemNote] = {
    "INVALID_JSON": ProblemNote(
        "The body could not be read as JSON: broken syntax, text that is not UTF-8, or nesting"
        " without end.",
        "Send one JSON object, encoded as UTF-8, as your language's JSON library writes it.",
    ),
    "INVALID_REQUEST": ProblemNote(
        "The JSON is fine, but a field is missing, unknown, of the wrong type or out of range.",
        "Look at `errors`: each names a field by JSON pointer and says what was expected.",
    ),
    "INVALID_HEADER": ProblemNote(
        "A header that carries a meaning here does not have the form it needs.",
        "Look at `errors` for its name. An `Idempotency-Key` is 1 to 255 printable ASCII"
        " characters.",
    ),
    "INVALID_CURSOR": ProblemNote(
        "The cursor was cut short, changed, or made by somebody else.",
        "Use `next_cursor` exactly as it came, or start again without a cursor.",
    ),
    "INVALID_HTTP": ProblemNote(
        "What came over the connection is not an HTTP/1.1 request.",
        "Speak plain HTTP/1.1 to this port; TLS ends at a proxy before it.",
    ),
    "UNAUTHENTICATED": ProblemNote(
        "There is no API key with the request, or it is misspelt, unknown, revoked or expired."
        " All of these look the same on purpose.",
        "Send `Authorization: Bearer fw_…`. Keys in the address are never accepted. If the key"
        " was revoked, ask an operator for another.",
    ),
    "FORBIDDEN": ProblemNote(
        "The key is good but made for something else: a tenant's key submits jobs, a worker's key"
        " runs them, an operator's key manages tenants and keys.",
        "Use the key with the right scope; the scope is the second part of its text.",
    ),
    "TENANT_SUSPENDED": ProblemNote(
        "An operator suspended the tenant that this key belongs to. Its keys open nothing, nothing"
        " of it starts, and nothing is lost: what waits goes on when the tenant is resumed.",
        "`detail` has the operator's reason. Ask whoever runs the platform; a worker keeps trying"
        " by itself.",
    ),
    "TENANT_MOVING": ProblemNote(
        "An operator moves the tenant that this key belongs to within the platform. Its keys open"
        " nothing and nothing of it starts until it is there; nothing is lost.",
        "Send the same again, after `Retry-After`, for as long as it takes: seconds for most, some"
        " minutes for a tenant with a million jobs. Workers do so by themselves, the SDK for as"
        " long as its `patience` (15 s).",
    ),
    "CROSS_SITE_REQUEST": ProblemNote(
        "A browser's session came by cookie with something that changes things, and without the"
        " session's token against forgery; or a page of another site tried to sign somebody in."
        " Nothing was changed.",
        "Send the `csrf` of `GET /session` as the header `X-Fairway-Csrf`. Programs need neither"
        " cookie nor token: they send `Authorization: Bearer fw_…`.",
    ),
    "SESSION_OF_ANOTHER_KEY": ProblemNote(
        "A worker session belongs to the key that opened it, and this call names one with another"
        " key. Nothing of the call was taken.",
        "Make 32 random hex digits of your own in every new process, and keep them to yourself. A"
        " worker that gets a new key starts anew.",
    ),
    "NOT_FOUND": ProblemNote(
        "Nothing is there, or it belongs to another tenant: both look the same.",
        "Check the id and the key you use. Jobs are removed when their retention ends.",
    ),
    "CHECKPOINT_LOST": ProblemNote(
        "The job has saved checkpoints, and none of them can be read any more: their objects are"
        " gone or damaged. An event `checkpoint_lost` tells its tenant.",
        "The run begins at the beginning. Tell the operator: object storage has lost something.",
    ),
    "METHOD_NOT_ALLOWED": ProblemNote(
        "The path exists but does not take this method.",
        "The `Allow` header lists the methods that it takes.",
    ),
    "REQUEST_TIMEOUT": ProblemNote(
        "The request began, but its headers or its body did not arrive in time.",
        "Send it again over a better connection, or in smaller batches. Nothing was written.",
    ),
    "CONFLICT": ProblemNote(
        "The thing is in a state that does not allow this: a job that has ended cannot be"
        " cancelled, a name that is taken cannot be taken again, a job type that was not put by"
        " hand cannot be taken back.",
        "Read its present state and decide again.",
    ),
    "NOT_UNIQUE": ProblemNote(
        "The job was to be the only one of its kind, and another with the same unique key still"
        " counts: it is in one of the states named, and its time is not over. If it was to be"
        " replaced: it does not wait any more, or other jobs of a flow count on it.",
        "Nothing to do, as a rule: the sentence names the job that is there. With `on_conflict`"
        " set to `return` it is the answer.",
    ),
    "LEASE_LOST": ProblemNote(
        "The run that asks holds the job no longer: its worker was silent for too long, or the job"
        " has ended. What it wanted to save is not kept.",
        "Stop this run without a report. Another has the job, or will.",
    ),
    "OBJECT_GONE": ProblemNote(
        "This payload or result was kept in object storage and is no longer there. A job whose"
        " payload is gone ends as dead, with the class `permanent`.",
        "Asking again does not help. Submit the job again, and tell the operator.",
    ),
    "OBJECT_DAMAGED": ProblemNote(
        "This payload or result is in object storage, but its size or checksum is not what was"
        " written. It is never passed on. A job whose payload is damaged ends as dead.",
        "Asking again does not help. Submit the job again, and tell the operator.",
    ),
    "PAYLOAD_TOO_LARGE": ProblemNote(
        "The body of the request, or the payload of a job, is over its limit.",
        "Put a large payload where `POST /v1/uploads` says. Split large batches.",
    ),
    "TOO_MANY_VALUES": ProblemNote(
        "The body holds so many values that looking at them would hold up everybody else: 100 000"
        " in one payload, 300 000 in a batch. What was refused counts towards your rate, by its"
        " size.",
        "Send smaller batches. Put a payload with more values where `POST /v1/uploads` says, and"
        " send `payload_upload` in its place. The SDK does both by itself.",
    ),
    "UNSUPPORTED_MEDIA_TYPE": ProblemNote(
        "The body is declared as something other than plain JSON, or it is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "IDEMPOTENCY_KEY_REUSED": ProblemNote(
        "Within the last 24 hours this `Idempotency-Key` came with another body.",
        "Use a new key for a new job. To repeat a request, repeat its body to the byte.",
    ),
    "PAYLOAD_DOES_NOT_FIT": ProblemNote(
        "The job type was registered with a JSON Schema, and the payload does not fit it.",
        "Look at `errors`: it names the place by JSON pointer. `GET /v1/job-types/{name}` shows the"
        " schema to operators.",
    ),
    "TOO_MANY_JOB_TYPES": ProblemNote(
        "A job type is a kind of work with a handler of its own, and yours are too many by now: a"
        " tenant's jobs, schedules and pauses may name 1 000 that no shared worker runs.",
        "Put what varies (ids, names, dates) into the payload and keep the type constant. A name"
        " that no job, schedule, pause or worker uses any more is free again after a day; a job"
        " that has ended uses it while it is kept. A worker never hears this: its reply lists the"
        " types that were refused, and it runs the others.",
    ),
    "TOO_MANY_UPLOADS": ProblemNote(
        "As many of your uploads are on their way as you may have at a time.",
        "Wait until one has ended, or for `Retry-After` seconds, and send it again.",
    ),
    "UPLOAD_QUOTA_EXCEEDED": ProblemNote(
        "You have uploaded as many bytes as may wait for their jobs, or as many bytes or uploads as"
        " may be kept with those that have their jobs; `detail` says which.",
        "Submit the jobs of what you have uploaded. Every upload is removed after two days.",
    ),
    "TOO_MANY_SCHEDULES": ProblemNote(
        "You have as many recurring schedules as a tenant may have.",
        "Delete some, or let one schedule's job submit many jobs.",
    ),
    "TOO_MANY_WEBHOOKS": ProblemNote(
        "You have as many webhooks as a tenant may have.",
        "Delete some, or let one receiver pass events on.",
    ),
    "TOO_MANY_WEBHOOK_TESTS": ProblemNote(
        "Ten tests of this webhook wait for its receiver already.",
        "See in its deliveries what the receiver answers; tests go on being tried.",
    ),
    "TOO_MANY_CHANGES": ProblemNote(
        "You switched `job_events` on and off ten times in a row; then it is once in six seconds.",
        "Leave it on: who reads the log can leave out what it does not want.",
    ),
    "TOO_MANY_PAUSES": ProblemNote(
        "You have as many pauses in force as a tenant may have: 100.",
        "Resume what need not be paused any more, or pause a whole pool, or all of your jobs.",
    ),
    "HEAD_TOO_LARGE": ProblemNote(
        "Request line and headers have more than 64 KB, there are more than 128 headers, or the"
        " address has more than 8 KB.",
        "Put data into the body, and ask for less at once.",
    ),
    "TOO_MANY_SESSIONS": ProblemNote(
        "The workers with your keys have as many sessions as a tenant may have: 200.",
        "Run fewer workers with more slots each. A session whose worker died is forgotten within"
        " a lease, so wait for `Retry-After` seconds and say hello again.",
    ),
    "TOO_MANY_SLOTS": ProblemNote(
        "The workers with your keys would have more slots in all than a tenant may have: 10 000.",
        "Offer fewer slots. Those of a worker that died are free within a lease, so wait for"
        " `Retry-After` seconds and say hello again.",
    ),
    "TOO_MANY_BYTES": ProblemNote(
        "Bodies of over 64 KB are counted while they are under way, and yours together have as many"
        " bytes as one tenant may have at a time. Nothing of this request was read.",
        "Send fewer at a time, and this one again after `Retry-After` seconds. Upload large"
        " payloads.",
    ),
    "UPGRADE_REQUIRED": ProblemNote(
        "The request came as plain HTTP, or a proxy on the way left the upgrade out.",
        "Open a WebSocket there, and let proxies pass `Upgrade` and `Connection` on; or follow"
        " `/v1/events/stream`, which needs neither.",
    ),
    "TOO_MANY_STREAMS": ProblemNote(
        "You have as many event streams open as a tenant may have, or the server has.",
        "Close streams that nobody reads, or ask now and then with `Prefer: wait`.",
    ),
    "TOO_MANY_WAITING": ProblemNote(
        "Large bodies are looked at one by one, and as many of yours wait for that as may. Or as"
        " many large payloads and results are being sent to you as may be at a time.",
        "Wait for `Retry-After` seconds and send it again. Upload large payloads.",
    ),
    "TOO_MANY_WRONG_KEYS": ProblemNote(
        "Many requests from your address came with keys that are not valid.",
        "Check the key. Wait for `Retry-After` seconds before you try again.",
    ),
    "TOO_MANY_SIGN_INS": ProblemNote(
        "Your tenant's keys, or your operator's key, opened very many sessions or links of late.",
        "Keep the cookie of one session; programs send their key and need none.",
    ),
    "UNKNOWN_POOL": ProblemNote(
        "There is no pool with this name.",
        "`GET /v1/pools` lists those there are. Or leave the pool out.",
    ),
    "QUEUE_DEPTH_EXCEEDED": ProblemNote(
        "As many of your jobs wait as your limit allows. Nothing of this request was accepted.",
        "Wait for `Retry-After` seconds and send it again, or ask for a higher limit.",
    ),
    "TENANT_RATE_LIMIT_EXCEEDED": ProblemNote(
        "You submit faster than your limit allows. Nothing of this request was accepted.",
        "Wait for `Retry-After` seconds and send it again.",
    ),
    "TOO_MANY_QUESTIONS": ProblemNote(
        "Counts, sums and filtered lists go through many jobs. A tenant's are answered one at a"
        " time, a few wait in line, and yours is beyond that.",
        "Ask one after the other, with some pause after this reply.",
    ),
    "INTERNAL": ProblemNote(
        "Something went wrong on our side that we did not foresee.",
        "Try again, with the same `Idempotency-Key` if you sent one. If it stays, tell the"
        " operator the `request_id`: it is in the server's log.",
    ),
    "NO_ROOM": ProblemNote(
        "Bodies of over 64 KB are counted while they are under way, and all together have as many"
        " bytes as this server has room for. Nothing of this request was read.",
        "Wait for `Retry-After` seconds, with some chance added, and send it again.",
    ),
    "OVERLOADED": ProblemNote(
        "The server has more to do than it can take right now, or more of yours than it does at a"
        " time: `detail` says what. Nothing of this request was accepted.",
        "Wait for `Retry-After` seconds, with some chance added, and send it again.",
    ),
    "DISK_FULL": ProblemNote(
        "The disk of the database has little room left, and that is kept for the outcomes of jobs"
        " that were accepted. Nothing of this request was accepted.",
        "Wait for `Retry-After` seconds and send it again. Operators: make room, see *When the disk"
        " is full* in OPERATING.",
    ),
    "STOPPING": ProblemNote(
        "The only server of a platform is being stopped: it finishes what runs and takes no new"
        " jobs. Nothing of this request was accepted.",
        "Wait for `Retry-After` seconds, with some chance added, and send it again: by then it may"
        " have been started again.",
    ),
    "QUESTION_TOO_LARGE": ProblemNote(
        "The answer lies behind more jobs than the store can look at within a few seconds.",
        "Ask for a shorter time (`since`, `until`), or with fewer filters. It may also go through"
        " when the store is less busy.",
    ),
    "UNAVAILABLE": ProblemNote(
        "The store does not answer right now, or cannot be written to. Unless `detail` says so, it"
        " is not known whether a submission was written.",
        "Send it again after `Retry-After` seconds. With the same `Idempotency-Key` it is accepted"
        " once; without one, look at `GET /v1/jobs` before, or it may run twice.",
    ),
    "STORAGE_UNAVAILABLE": ProblemNote(
        "Object storage, which holds checkpoints and large payloads, does not answer, or may not be"
        " written to. `detail` says why.",
        "Send it again after `Retry-After` seconds. If it stays, tell the operator: `fairway check`"
        " looks at FAIRWAY_STORAGE_URL.",
    ),
    "SEVERAL_SHARDS": ProblemNote(
        "The tenant's jobs are spread over several shards, and it cannot have this; or a header"
        " `Fairway-Part` names a shard that it has not, or one where all are meant.",
        "`detail` says what is possible instead. Without `Fairway-Part` all shards are asked.",
    ),
    "HOME_ELSEWHERE": ProblemNote(
        "The tenant's home is another region, or the job is in another one, and this cannot be"
        " passed on to it: a stream that stays open, or a payload that goes to object storage.",
        "`detail` names the region and its address: ask there.",
    ),
    "HOME_UNREACHABLE": ProblemNote(
        "The tenant's home is another region, and none of its servers answers. Single jobs and"
        " batches with payloads of their own are held here meanwhile; everything else waits.",
        "Try again when that region is back, or after an operator has moved its tenants"
        " (`fairway region failover`).",
    ),
    "DIRECTORY_UNREACHABLE": ProblemNote(
        "Tenants, tiers, keys and homes are changed in one region, and it does not answer. What is"
        " known of them holds everywhere meanwhile.",
        "Try again when that region is back; if it is lost, `fairway region failover` makes another"
        " one the directory.",
    ),
    "HELD_FULL": ProblemNote(
        "The tenant's home cannot be reached, and as many jobs are kept for it in this region as"
        " may be. Nothing of this was accepted.",
        "Try again when the home region is back, or after an operator has moved its tenants.",
    ),
    "NOT_HOME": ProblemNote(
        "A server of another region handed jobs over to one that is not their tenant's home, or"
        " that has not heard of it yet.",
        "Servers try again by themselves; programs never see this.",
    ),
    "NOT_OWNER": ProblemNote(
        "Ownership of your part of the jobs is moving between servers. This takes seconds.",
        "Send it again after `Retry-After` seconds.",
    ),
}
