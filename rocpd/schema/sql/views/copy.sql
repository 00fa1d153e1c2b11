-- RPD's name: all calls that copy memory, with the times of the calls. NULL where a value was not recorded.
CREATE VIEW "copy" AS
SELECT
    V.id AS "id",                          -- call, unique in its rank
    V.pid AS "pid",                        -- OS process id
    V.tid AS "tid",                        -- OS thread id
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.apiName AS "apiName",                -- function
    C.stream AS "stream", -- HIP stream
    C.size AS "size", -- requested size [bytes]
    C.width AS "width", -- width of a copy in two dimensions [bytes]
    C.height AS "height", -- rows of a copy in two dimensions
    C.kind AS "kind", -- hipMemcpyKind: 0 host to host, 1 host to device, 2 device to host, 3 device to device, 4 default
    C.dst AS "dst", -- address written to
    C.src AS "src", -- address read from
    C.dstDevice AS "dstDevice", -- device written to
    C.srcDevice AS "srcDevice", -- device read from
    C.sync AS "sync", -- whether the call waits
    C.pinned AS "pinned", -- whether memory of the host is pinned
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_copyapi" C
    JOIN "rocpd_api" V ON V.guid = C.guid
    AND V.id = C.api_ptr_id;
