"""`python -m rocpd.rpd.autograd`: kernels by operator of PyTorch, which RPD's tool wrote into the trace."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.rpd.answers import answer

    answer("select * from autogradKernel")
