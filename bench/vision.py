"""Genus beside PyTorch: the same weights, the same images, the same number of threads, in one run.

Part of compare.py: `python3 bench/compare.py vision` (pip install torch timm torchvision pillow safetensors)."""
import json
import os
import statistics
import subprocess
import time

import numpy as np

# Our name, timm's name and options, side of the image, title.
ENCODERS = [
    ("dino-vitb16", "vit_base_patch16_224", {}, 224, "ViT-B/16"),
    ("vit:positions=smoothed", "vit_small_patch14_dinov2", {"dynamic_img_size": True}, 224, "ViT-S/14"),
    ("resnet50", "resnet50", {}, 224, "ResNet-50"),
    ("efficientnet-lite2", "tf_efficientnet_lite2", {}, 260, "EfficientNet-Lite2"),
]
BATCHES = (1, 8, 32)
FILES = 96


def vision(folder, genus, timings, run_measured):
    import timm
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    print(f"\nPyTorch {torch.__version__}, {torch.get_num_threads()} threads, f32")
    print("\n| ms an image | batch | PyTorch | Genus | Genus / PyTorch |\n|---|---|---|---|---|")
    for ours, theirs, options, side, title in ENCODERS:
        model = timm.create_model(theirs, num_classes=0, **options).eval()
        weights = os.path.join(folder, f"{theirs}.safetensors")
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
        for batch in BATCHES:
            repeats = max(2, 24 // batch)
            pixels = torch.from_numpy(((np.arange(batch * 3 * side * side) % 255) / 127.0 - 1.0).astype(np.float32))
            pixels = pixels.reshape(batch, 3, side, side)
            peer, mine = [], []
            with torch.inference_mode():
                model(pixels)
                for _ in range(3):
                    for _ in range(repeats):
                        start = time.perf_counter()
                        model(pixels)
                        peer.append((time.perf_counter() - start) / batch)
                    out = subprocess.run([timings, ours, weights, str(repeats), str(batch)], capture_output=True, text=True, check=True)
                    mine.append(json.loads(out.stdout)[str(batch)]["median"])
            a, b = statistics.median(peer), statistics.median(mine)
            print(f"| {title} | {batch} | {1e3 * a:.1f} | {1e3 * b:.1f} | **{b / a:.2f}** |", flush=True)
    pipeline(folder, genus, run_measured)


def pipeline(folder, genus, run_measured):
    """JPEG files to features: decode, resize, crop, network."""
    import timm
    import torch
    from PIL import Image
    from safetensors.torch import save_file
    from torchvision import transforms

    photos = os.path.join(folder, "photos")
    os.makedirs(photos)
    rng = np.random.default_rng(0)
    for i in range(FILES):
        small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(small).resize((1000, 750), Image.BICUBIC).save(os.path.join(photos, f"{i:04}.jpg"), quality=90)
    print("\n| whole pipeline, 1000 × 750 JPEG files | PyTorch | Genus | Genus / PyTorch | Genus peak memory |\n|---|---|---|---|---|")
    for ours, theirs, options, side, title in ENCODERS:
        model = timm.create_model(theirs, num_classes=0, **options).eval()
        weights = os.path.join(folder, f"{theirs}.safetensors")
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
        resize = int(side * (292 / 260 if side == 260 else 256 / 224))
        steps = [transforms.Resize(resize, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(side), transforms.ToTensor()]
        steps.append(transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        chain = transforms.Compose(steps)

        class Files(torch.utils.data.Dataset):
            def __len__(self):
                return FILES

            def __getitem__(self, i):
                return chain(Image.open(os.path.join(photos, f"{i:04}.jpg")).convert("RGB"))

        loader = torch.utils.data.DataLoader(Files(), batch_size=16, num_workers=os.cpu_count())
        start = time.perf_counter()
        with torch.inference_mode():
            for images in loader:
                model(images)
        peer = time.perf_counter() - start
        out = os.path.join(folder, "photos.npz")
        command = [genus, "embed", photos, "--encoder", ours, "--weights", weights, "-o", out, "--no-cache", "--quiet"]
        mine, memory, _ = run_measured(command)
        print(f"| {title} | {FILES / peer:.1f} images/s | {FILES / mine:.1f} images/s | **{mine / peer:.2f}** | {memory:.0f} MB |", flush=True)
