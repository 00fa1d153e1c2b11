-- Instructions of code objects, as branches of ROCm after schema 3.0.3 have them; only with PC samples.
CREATE TABLE "rocpd_disassembly_data{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- row id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER,                                   -- node
    "pid" INTEGER,                                   -- process
    "code_object_id" INTEGER,                        -- code object
    "code_object_offset" INTEGER,                    -- where in it the instruction is [bytes]
    "instruction" TEXT,                              -- assembly
    "comment" TEXT                                   -- source line as file:line, where the kernel was compiled with -g
);
