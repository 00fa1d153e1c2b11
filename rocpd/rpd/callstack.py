"""`python -m rocpd.rpd.callstack`: calls with the work inside them, which RPD's tool wrote into the trace."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.rpd.answers import answer

    answer("select args, avg(cpu_time), avg(gpu_time) from callStack_inclusive_name group by args")
