-- Basic blocks of one rank, as Omniprobe measured them by dispatch.
SELECT kernel, ordinal, source_file, start_line, end_line, ticks, executions, branchiness, instructions
FROM basic_blocks
