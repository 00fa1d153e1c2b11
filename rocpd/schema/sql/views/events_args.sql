-- Arguments with their event, one row per row of rocpd_arg.
CREATE VIEW "events_args" AS
SELECT
    A.event_id AS "event_id",               -- event row id
    C.string AS "category",                 -- domain of the event, such as KERNEL_DISPATCH
    E.stack_id AS "stack_id",               -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id", -- stack_id of the enclosing call
    E.correlation_id AS "correlation_id",   -- external correlation id
    A.position AS "arg_position",           -- position in the argument list, from 0
    A.type AS "arg_type",                   -- declared type
    A.name AS "arg_name",                   -- parameter name
    A.value AS "arg_value",                 -- value as text
    E.call_stack AS "call_stack",           -- JSON call stack
    E.line_info AS "line_info",             -- JSON source line
    A.extdata AS "extdata"                  -- JSON of the argument
FROM
    "rocpd_arg{{uuid}}" A
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = A.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id;
