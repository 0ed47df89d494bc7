"""Two ranks in an NCCL all-reduce, one of them faults."""

import os

import torch
import triton
import triton.language as tl

from .harness import FAR, MIB, fact, scene, unavailable


@triton.jit
def rank_local_store(out, beyond, block: tl.constexpr):
    offsets = tl.arange(0, block)
    tl.store(out + offsets + tl.where(offsets == 77, beyond, 0), 1.0)


def rank(number: int, port: int) -> None:
    import torch.distributed as distributed

    torch.cuda.set_device(number)
    distributed.init_process_group(
        "nccl",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=number,
        world_size=2,
        device_id=torch.device("cuda", number),
    )
    gradient = torch.ones(MIB, device="cuda")
    for step in range(10**9):
        distributed.all_reduce(gradient)
        gradient.fill_(1.0)
        if step == 150 and number == 1:
            fact("bad_address", gradient.data_ptr() + 4 * (77 + FAR))
            rank_local_store[(1,)](gradient, FAR, block=256)
        if step == 149 and number == 0:
            print("READY", flush=True)
        torch.cuda.synchronize()


@scene
def nccl_pair() -> None:
    """Rank 1 faults in a kernel of its own; rank 0 waits for it in the all-reduce."""
    if torch.cuda.device_count() < 2:
        unavailable("needs two GPUs")
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"
    from torch import multiprocessing as processes

    port = 20000 + os.getpid() % 20000
    workers = [
        processes.get_context("spawn").Process(target=rank, args=(number, port)) for number in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
