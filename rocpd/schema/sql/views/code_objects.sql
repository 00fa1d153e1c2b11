-- Loaded code objects, one row per row of rocpd_info_code_object.
CREATE VIEW "code_objects" AS
SELECT
    O.id AS "id",                                            -- code object id, unique in its rank
    O.guid AS "guid",                                        -- GUID of the rank
    O.nid AS "nid",                                          -- node id
    P.pid AS "pid",                                          -- OS process id
    A.absolute_index AS "agent_abs_index",                   -- agent: index of the hardware node
    O.uri AS "uri",                                          -- where it came from
    O.load_base AS "load_base",                              -- address it was loaded at
    O.load_size AS "load_size",                              -- size in memory [bytes]
    O.load_delta AS "load_delta",                            -- loaded minus linked address [bytes]
    O.storage_type AS "storage_type_str",                    -- FILE or MEMORY
    CASE WHEN json_valid(O.extdata) THEN json_extract(O.extdata, '$.size') END AS "code_object_size", -- size of the runtime record [bytes] {integer}
    CASE WHEN json_valid(O.extdata) THEN json_extract(O.extdata, '$.storage_type') END AS "storage_type", -- storage type number of the runtime {integer}
    CASE WHEN json_valid(O.extdata) THEN json_extract(O.extdata, '$.memory_base') END AS "memory_base", -- address of the image in memory {integer}
    CASE WHEN json_valid(O.extdata) THEN json_extract(O.extdata, '$.memory_size') END AS "memory_size" -- size of the image in memory [bytes] {integer}
FROM
    "rocpd_info_code_object{{uuid}}" O
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = O.agent_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = O.pid;
