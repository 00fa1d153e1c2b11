-- Everything that happened on CPU threads: regions, then samples as zero-length regions.
CREATE VIEW "regions_and_samples" AS
SELECT
    V."id" AS "id",                            -- row id, unique in its rank and kind
    V."guid" AS "guid",                        -- GUID of the rank
    V."category" AS "category",                -- domain of the event
    V."name" AS "name",                        -- function or track name
    V."nid" AS "nid",                          -- node id
    V."pid" AS "pid",                          -- OS process id
    V."tid" AS "tid",                          -- OS thread id
    V."start" AS "start",                      -- start [ns]
    V."end" AS "end",                          -- end [ns]
    V."duration" AS "duration",                -- end - start [ns]
    V."event_id" AS "event_id",                -- event row id
    V."stack_id" AS "stack_id",                -- internal correlation id
    V."parent_stack_id" AS "parent_stack_id",  -- stack_id of the enclosing call
    V."corr_id" AS "corr_id",                  -- external correlation id
    V."extdata" AS "extdata",                  -- JSON of the event
    V."call_stack" AS "call_stack",            -- JSON call stack
    V."line_info" AS "line_info"               -- JSON source line
    {{rank_host_of_V}}
FROM
    "regions" V
UNION ALL
SELECT
    V."id",
    V."guid",
    V."category",
    V."name",
    V."nid",
    V."pid",
    V."tid",
    V."start",
    V."end",
    V."duration",
    V."event_id",
    V."stack_id",
    V."parent_stack_id",
    V."corr_id",
    V."extdata",
    V."call_stack",
    V."line_info"
    {{rank_host_of_V}}
FROM
    "sample_regions" V;
