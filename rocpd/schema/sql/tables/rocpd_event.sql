-- Regions, samples, dispatches, copies and allocations have an event each: category and ids that link them.
CREATE TABLE "rocpd_event{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- event id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "category_id" INTEGER,                           -- domain: KERNEL_DISPATCH, HIP_RUNTIME_API, MARKER_CORE_API …
    "stack_id" INTEGER,                              -- internal correlation id; equal for an API call and the GPU work it launched
    "parent_stack_id" INTEGER,                       -- stack_id of the enclosing call
    "correlation_id" INTEGER,                        -- external correlation id, set by the user
    "call_stack" JSONB DEFAULT '{}' NOT NULL,        -- call stack
    "line_info" JSONB DEFAULT '{}' NOT NULL,         -- source line
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- message of a marker, further facts
    FOREIGN KEY ("category_id") REFERENCES "rocpd_string{{uuid}}" ("id") ON UPDATE CASCADE
);
