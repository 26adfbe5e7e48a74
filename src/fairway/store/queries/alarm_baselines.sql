-- name: busy_tenants
-- Tenants that handed in many jobs in this hour or the last one, with what is usual for them: the mean of their hours in
-- the day before, or the same hours of yesterday if those had more. Who has no hour before has nothing usual.
SELECT tenant, recent, usual FROM (
    SELECT tenant,
           max(jobs) FILTER (WHERE at >= :recent)::float8 AS recent,
           greatest(
               sum(jobs) FILTER (WHERE at < :recent) * 3600 / extract(epoch FROM :recent - min(at)),
               max(jobs) FILTER (WHERE at < :since::timestamptz + interval '2 hours')
           )::float8 AS usual
    FROM (
        SELECT tenant, at, sum(accepted) AS jobs FROM insight_hours
        WHERE at >= :since AND kind = 3 AND tenant <> 0
        GROUP BY tenant, at
    ) AS hours
    GROUP BY tenant HAVING min(at) < :recent
) AS found
WHERE recent >= :least
ORDER BY recent / greatest(usual, 1) DESC, tenant LIMIT :limit
