#!/usr/bin/env bash
# Makes fuzz/corpus out of the files that the tests compare with. Where a byte chooses among formats it stands first.
set -euo pipefail
cd "$(dirname "$0")/.."
data=../crates/genus-data/tests/goldens
vision=../crates/genus-vision/tests/goldens

# seed TARGET CHOICE NAME: what comes in, with its choice before it, as a file of the target's corpus.
seed() {
    mkdir -p "corpus/$1"
    { [ -z "$2" ] || printf "\\x0$2"; cat; } > "corpus/$1/$3"
}

number=0
for format in npy npz safetensors csv jsonl parquet; do
    for file in "$data"/*."$format"; do
        [ "$(stat -c %s "$file")" -gt 16000 ] || seed table $number "$(basename "$file")" < "$file"
    done
    number=$((number + 1))
done
for file in "$data"/*.feather "$data"/*.arrow; do
    seed table 7 "$(basename "$file")" < "$file"
done
seed table 8 wide.tsv < "$data/wide.tsv"
seed table 9 semicolons.csv < "$data/semicolons.csv"
# Three arrays of one length for the archive that the target makes itself.
for x in f4 fortran integers_i2; do
    { printf '\x00\x00\x00'; cat "$data/$x.npy"; } | seed table 6 "archive_$x"
done
for file in "$vision"/images/*; do
    [ "$(stat -c %s "$file")" -gt 4000 ] || seed image "" "$(basename "$file")" < "$file"
done
for file in "$vision"/weights/*.* "$vision"/weights/refused/*.*; do
    seed weights "" "$(basename "$file")" < "$file"
    seed run 3 "$(basename "$file")" < "$file"
    seed resume 2 "$(basename "$file")" < "$file"
done
printf 'a.jpg\nb/c.png\n' | seed manifest 0 text
printf 'path,id,label\na.jpg,1,cat\n"b,c.png",2,\n' | seed manifest 1 csv
printf '{"path": "a.jpg", "id": 1, "label": "cat"}\n' | seed manifest 2 jsonl
seed manifest 3 parquet < "$data/manifest.parquet"
seed manifest 4 feather < "$data/manifest.feather"
for file in "$data"/datasets/*.mat; do
    for choice in 0 9 a; do seed datasets $choice "$(basename "$file")_$choice" < "$file"; done
done
for file in "$data"/datasets/cifar_*; do
    for choice in 1 d; do seed datasets $choice "$(basename "$file")_$choice" < "$file"; done
done
printf '00001.jpg,1,2,3,4,14\n' | seed datasets b csv
for class in $(seq 196); do echo "Car $class"; done | seed datasets c names
head -c 6148 /dev/zero | seed datasets e binary
for class in $(seq 100); do echo "fine$class"; done | seed datasets f names
# Two bytes choose a data set and a part of it.
printf '\x02n01440764/a.JPEG\ntrain/n01443537/b.jpg\nval/n01440764/c.jpg\n' | seed folders 1 imagenet100
printf '\x02train/apple/a.png\ntest/apple/b.png\n' | seed folders 0 cifar100
printf '\x02images/001.Bird/a.jpg\n' | seed folders 2 cub200
printf '\x02train/AM General Hummer SUV 2000/a.jpg\ntest/x/b.jpg\n' | seed folders 3 cars
printf '\x02small-train/1/a.jpg\nsmall-validation/2/b.jpg\n' | seed folders 5 herbarium19
printf '\x02images_background/Latin/character01/a.png\nimages_evaluation/Tibetan/character02/b.png\n' | seed folders 6 omniglot
printf '1 001.Bird/a.jpg\n' | seed datasets 2 images
printf '1 1\n' | seed datasets 3 labels
printf '1 0\n' | seed datasets 4 split
printf '1 001.Bird\n2 002.Fish\n' | seed datasets 5 classes
printf '707-320\n727-200\n' | seed datasets 6 variants
printf '1 707-320\n' | seed datasets 8 train
printf '1 707-320\n2 727-200\n' | seed datasets 7 trainval
printf '{"base": ["cat", 1], "novel": ["owl"]}' | seed split "" split
seed run 0 config < seeds/config.toml
seed run 1 encoder < seeds/encoder.toml
printf '{"step":1,"epoch":1,"loss":1.5,"learning_rate":0.01,"images_per_second":9.0}\n{"step":2,"ep' | seed resume 0 metrics
for choice in 3 4; do printf '\x00\x10\x20\x01\x00\x30' | seed resume $choice changes_$choice; done
printf 'shc:t=3:stop=after' | seed words 0 method
printf 'ukc:alpha=1.3:restarts=2' | seed words 0 ukc
printf 'vit:patch=7,dim=96,depth=4,heads=3' | seed words 1 encoder
printf '3-24' | seed words 2 tail

# What only the program writes: a taxonomy that has grown, and a calibration.
genus=${1:-}
if [ -n "$genus" ]; then
    folder=$(mktemp -d)
    trap 'rm -r "$folder"' EXIT
    {
        echo id,label,f0,f1,f2
        for class in 1 2 3 4 5 6 7 8 9; do for at in 1 2 3 4; do echo "$class-$at,c$class,$class,$at,$((9 - class))"; done; done
    } > "$folder/base.csv"
    sed '2,$s/,c[0-9]*,/,,/' "$folder/base.csv" > "$folder/pile.csv"
    (cd "$folder" && "$genus" calibrate base.csv -o base.safetensors --quiet)
    (cd "$folder" && "$genus" discover --support base.csv --query pile.csv --method shc --out found --no-report --quiet)
    (cd "$folder" && "$genus" assign --taxonomy found --query base.csv --calibration base.safetensors --grow found --quiet > rows.csv)
    for choice in 0 1; do seed calibration $choice "$choice" < "$folder/base.safetensors"; done
    number=0
    for file in taxonomy.toml centres.safetensors waiting.npz items.safetensors; do
        [ ! -e "$folder/found/$file" ] || seed taxonomy $number "$file" < "$folder/found/$file"
        number=$((number + 1))
    done
fi
