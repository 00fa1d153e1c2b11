-- Kernels of the loaded code objects.
CREATE TABLE "rocpd_info_kernel_symbol{{uuid}}" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- kernel id
    "guid" TEXT DEFAULT '{{guid}}' NOT NULL,         -- GUID of the process that wrote the row
    "nid" INTEGER NOT NULL,                          -- node the process ran on
    "pid" INTEGER NOT NULL,                          -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    "code_object_id" INTEGER NOT NULL,               -- code object that holds it
    "kernel_name" TEXT,                              -- mangled name with .kd
    "display_name" TEXT,                             -- readable name
    "kernel_object" INTEGER,                         -- address of the kernel descriptor
    "kernarg_segment_size" INTEGER,                  -- kernel arguments [bytes]
    "kernarg_segment_alignment" INTEGER,             -- alignment of the arguments [bytes]
    "group_segment_size" INTEGER,                    -- static LDS per work-group [bytes]
    "private_segment_size" INTEGER,                  -- static scratch per work-item [bytes]
    "sgpr_count" INTEGER,                            -- scalar registers per wave
    "arch_vgpr_count" INTEGER,                       -- vector registers per work-item
    "accum_vgpr_count" INTEGER,                      -- accumulation registers per work-item
    "extdata" JSONB DEFAULT '{}' NOT NULL,           -- formatted_kernel_name, demangled_kernel_name, truncated_kernel_name, kernel_address
    FOREIGN KEY ("nid") REFERENCES "rocpd_info_node{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("pid") REFERENCES "rocpd_info_process{{uuid}}" ("id") ON UPDATE CASCADE,
    FOREIGN KEY ("code_object_id") REFERENCES "rocpd_info_code_object{{uuid}}" ("id") ON UPDATE CASCADE
);
