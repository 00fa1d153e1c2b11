-- RPD's name: calls that copy memory, with their arguments. NULL where a value was not recorded.
CREATE VIEW "rocpd_copyapi" AS
SELECT
    R.id AS "api_ptr_id",                          -- the call, in rocpd_api
    MAX(A.value) FILTER (WHERE A.name = 'stream') AS "stream", -- HIP stream {text}
    CAST(MAX(A.value) FILTER (WHERE A.name IN ('size', 'sizeBytes', 'count')) AS INTEGER) AS "size", -- requested size [bytes] {integer}
    CAST(MAX(A.value) FILTER (WHERE A.name = 'width') AS INTEGER) AS "width", -- width of a copy in two dimensions [bytes] {integer}
    CAST(MAX(A.value) FILTER (WHERE A.name = 'height') AS INTEGER) AS "height", -- rows of a copy in two dimensions {integer}
    CASE REPLACE(MAX(A.value) FILTER (WHERE A.name = 'kind'), 'hipMemcpy', '') WHEN 'HostToHost' THEN 0 WHEN 'HostToDevice' THEN 1 WHEN 'DeviceToHost' THEN 2 WHEN 'DeviceToDevice' THEN 3 WHEN 'Default' THEN 4 ELSE CAST(MAX(A.value) FILTER (WHERE A.name = 'kind') AS INTEGER) END AS "kind", -- hipMemcpyKind: 0 host to host, 1 host to device, 2 device to host, 3 device to device, 4 default {integer}
    MAX(A.value) FILTER (WHERE A.name = 'dst') AS "dst", -- address written to {text}
    MAX(A.value) FILTER (WHERE A.name = 'src') AS "src", -- address read from {text}
    CAST(MAX(A.value) FILTER (WHERE A.name IN ('dstDevice', 'dstDeviceId')) AS INTEGER) AS "dstDevice", -- device written to {integer}
    CAST(MAX(A.value) FILTER (WHERE A.name IN ('srcDevice', 'srcDeviceId')) AS INTEGER) AS "srcDevice", -- device read from {integer}
    CAST(MAX(A.value) FILTER (WHERE A.name = 'sync') AS INTEGER) AS "sync", -- whether the call waits {integer}
    CAST(MAX(A.value) FILTER (WHERE A.name = 'pinned') AS INTEGER) AS "pinned", -- whether memory of the host is pinned {integer}
    R.guid AS "guid"                               -- GUID of the rank
FROM
    "rocpd_region{{uuid}}" R
    JOIN "rocpd_string{{uuid}}" S ON S.id = R.name_id
    LEFT JOIN "rocpd_arg{{uuid}}" A ON A.event_id = R.event_id
WHERE
    S.string GLOB 'hipMemcpy*'
    OR S.string GLOB 'cudaMemcpy*'
    OR S.string GLOB 'cuMemcpy*'
GROUP BY
    R.id;
