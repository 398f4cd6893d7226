"""The CPU engine beside PyTorch and ONNX Runtime: the same weights, the same pixels, the same threads, taking turns in one run.

Part of compare.py: `python3 bench/compare.py engine` (pip install torch timm torchvision pillow safetensors onnx onnxscript onnxruntime).
Others may use the machine meanwhile, so that the best time of several is compared, not the mean; and with `--threads 1` it is the
time that the processor was at work, which others hardly change."""
import json
import os
import subprocess
import sys
import time

import numpy as np

# Our name, timm's name, side of the image, title, batches, GFLOP that an image needs (of the last block of a transformer, only what the
# class token does).
ENCODERS = [
    ("dino-vitb16", "vit_base_patch16_224", 224, "ViT-B/16", (1, 8, 32), 32.7),
    ("resnet50", "resnet50", 224, "ResNet-50", (1, 8), 8.2),
    ("efficientnet-lite2", "tf_efficientnet_lite2", 260, "EfficientNet-Lite2", (1, 8), 1.8),
]
FILES = 64


def ours(timings, isa, threads, *args):
    env = dict(os.environ, GENUS_ISA=isa, RAYON_NUM_THREADS=str(threads))
    out = subprocess.run([timings, *map(str, args)], capture_output=True, text=True, env=env)
    return json.loads(out.stdout) if out.returncode == 0 else None


def runs_in_bf16():
    """Whether PyTorch's bf16 works here: where a hypervisor hides what AMX needs, it dies of an illegal instruction."""
    probe = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a)"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


def best(run, repeats, batch, clock):
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append((clock() - start) / batch)
    return min(times)


def engine(folder, genus, timings, run_measured, rounds, threads):
    import onnxruntime
    import timm
    import torch
    from safetensors.torch import save_file

    clock, figure = (time.process_time, "work") if threads == 1 else (time.perf_counter, "best")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    peaks = {isa: peak["flops"] / 1e9 for isa in ("avx512", "avx2", "avx512bf16", "amx") if (peak := ours(timings, isa, threads, "peak"))}
    print(f"\nPyTorch {torch.__version__}, ONNX Runtime {onnxruntime.__version__}, {threads} threads, best of {rounds} rounds, time {'at work' if threads == 1 else 'by the clock'}")
    print("Peak of multiply-adds, all threads: " + ", ".join(f"{isa} {flops:.0f} GFLOP/s" for isa, flops in peaks.items()))
    names = ["PyTorch f32", "PyTorch bf16", "ONNX Runtime", *(f"Genus {isa}" for isa in peaks)]
    ours_first = [isa for isa in ("avx512", "avx2") if isa in peaks][:1] + [isa for isa in ("amx", "avx512bf16") if isa in peaks][:1]
    titles = [f"{isa} to PyTorch f32 | of its peak" for isa in ours_first]
    print(f"\n| ms an image | batch | {' | '.join(names + titles)} |\n|{'---|' * (len(names) + 2 * len(titles) + 2)}")
    with_bf16 = runs_in_bf16()
    rates = {}
    for name, theirs, side, title, batches, gflop in ENCODERS:
        model = timm.create_model(theirs, num_classes=0).eval()
        weights = os.path.join(folder, f"{theirs}.safetensors")
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
        half = timm.create_model(theirs, num_classes=0).eval().to(torch.bfloat16) if with_bf16 else None
        for batch in batches:
            pixels = ((np.arange(batch * 3 * side * side) % 255) / 127.0 - 1.0).astype(np.float32).reshape(batch, 3, side, side)
            tensor = torch.from_numpy(pixels)
            exported = os.path.join(folder, "model.onnx")
            torch.onnx.export(model, (tensor,), exported, dynamo=False, input_names=["x"])
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
            repeats = max(1, 8 // batch)
            peers = {
                "PyTorch f32": lambda: model(tensor),
                "ONNX Runtime": lambda: session.run(None, {"x": pixels}),
            }
            if half is not None:
                tensor16 = tensor.to(torch.bfloat16)
                peers["PyTorch bf16"] = lambda: half(tensor16)
            found = {}
            with torch.inference_mode():
                for run in peers.values():
                    run()
                for _ in range(rounds):
                    for peer, run in peers.items():
                        found[peer] = min(found.get(peer, np.inf), best(run, repeats, batch, clock))
                    for isa in peaks:
                        figures = ours(timings, isa, threads, name, weights, repeats, batch)
                        if figures:
                            key = f"Genus {isa}"
                            found[key] = min(found.get(key, np.inf), figures[str(batch)][figure])
            cells = [f"{1e3 * found[key]:.1f}" if key in found else "–" for key in names]
            for isa in ours_first:
                mine = found.get(f"Genus {isa}")
                cells.append(f"**{found['PyTorch f32'] / mine:.2f}×** | {100 * gflop / mine / peaks[isa]:.0f} %" if mine else "– | –")
            # What `genus embed` runs on by itself.
            rates[name] = (weights, title, 1 / found.get("Genus amx", found[f"Genus {ours_first[0]}"]))
            print(f"| {title} | {batch} | {' | '.join(cells)} |", flush=True)
    if threads == os.cpu_count():
        pipeline(folder, genus, run_measured, rates)


def pipeline(folder, genus, run_measured, rates):
    """JPEG files to features beside the engine alone; what loading takes is in both of two runs and cancels out."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for files, place in ((FILES, "few"), (3 * FILES, "many")):
        os.makedirs(os.path.join(folder, place))
        for i in range(files):
            small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
            image = Image.fromarray(small).resize((500, 375), Image.BICUBIC)
            image.save(os.path.join(folder, place, f"{i:04}.jpg"), quality=90)
    print("\n| 500 × 375 JPEG files | engine alone | pipeline | share | peak memory beyond the weights |\n|---|---|---|---|---|")
    for name, (weights, title, rate) in rates.items():
        times, memory = {}, 0
        for place in ("few", "many", "few", "many"):
            out = os.path.join(folder, "photos.npz")
            command = [genus, "embed", os.path.join(folder, place), "--encoder", name, "--weights", weights, "-o", out, "--no-cache", "--quiet"]
            elapsed, peak, _ = run_measured(command)
            times[place], memory = min(times.get(place, np.inf), elapsed), max(memory, peak)
        piped = 2 * FILES / (times["many"] - times["few"])
        beyond = memory - os.path.getsize(weights) / 1e6
        print(f"| {title} | {rate:.1f} images/s | {piped:.1f} images/s | **{100 * piped / rate:.0f} %** | {beyond:.0f} MB |", flush=True)
