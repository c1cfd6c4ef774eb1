# SPDX-License-Identifier: Apache-2.0
"""Makes the out-of-memory logs of real TensorFlow in tests/diagnose_logs: TensorFlow's BFC allocator
under a limit on the CPU (no GPU needed) fails with the same code and words as on a card.

    python tests/oracle/make_oom_logs.py [NAME...]

Each scenario runs in a process of its own; its output is cut to a few KB (most lines of the chunk
list go), paths and host names are made neutral, nothing else is changed.
"""
import os
import re
import subprocess
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "diagnose_logs")
SCENARIOS = {}


def scenario(name, limit):
    def keep(body):
        SCENARIOS[name] = (limit, body.__doc__)
        return body

    return keep


@scenario("batch-too-large-01-tf-eager.log", 600)
def eager():
    """
import tensorflow as tf
x = tf.random.normal([24, 160, 160, 3])
w = [tf.Variable(tf.random.normal([3, 3, c, 48])) for c in (3, 48, 48, 48)]
with tf.GradientTape() as tape:
    for k in w:
        x = tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME"))
    loss = tf.reduce_mean(x)
tape.gradient(loss, w)
"""


@scenario("batch-too-large-02-tf-graph.log", 700)
def graph():
    """
import numpy as np
import keras
from keras import layers
m = keras.Sequential([keras.Input((128, 128, 3))] +
    [layers.Conv2D(64, 3, padding="same", activation="relu") for _ in range(6)] +
    [layers.GlobalAveragePooling2D(), layers.Dense(5, activation="softmax")])
m.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
x = np.random.rand(64, 128, 128, 3).astype("float32")
m.fit(x, np.zeros(64), batch_size=64, epochs=1, verbose=2)
"""


@scenario("batch-too-large-03-tf-xla.log", 500)
def xla():
    """
import numpy as np
import keras
from keras import layers
m = keras.Sequential([keras.Input((96, 96, 3))] +
    [layers.Conv2D(64, 3, padding="same", activation="relu") for _ in range(6)] +
    [layers.GlobalAveragePooling2D(), layers.Dense(5, activation="softmax")])
m.compile("sgd", "sparse_categorical_crossentropy", jit_compile=True)
x = np.random.rand(64, 96, 96, 3).astype("float32")
m.fit(x, np.zeros(64), batch_size=64, epochs=1, verbose=2)
"""


@scenario("batch-too-large-04-tf-predict-all.log", 700)
def predict_all():
    """
import numpy as np
import keras
from keras import layers
m = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10)])
x = np.random.rand(10000, 28, 28, 1).astype("float32")
print(m.predict(x, batch_size=10000).shape)
"""


@scenario("model-too-large-01-tf-vgg-fc1.log", 700)
def vgg_fc1():
    """
import keras
m = keras.applications.VGG16(weights=None)
m.summary()
"""


@scenario("model-too-large-02-tf-adam-slots.log", 600)
def adam_slots():
    """
import numpy as np
import keras
from keras import layers
m = keras.Sequential([keras.Input((16384,)), layers.Dense(3072, activation="relu"), layers.Dense(10)])
m.compile("adam", "mse", jit_compile=False)
m.fit(np.zeros((2, 16384), "float32"), np.zeros((2, 10), "float32"), batch_size=1, verbose=2)
"""


@scenario("model-too-large-03-tf-embedding.log", 900)
def embedding():
    """
import keras
from keras import layers
m = keras.Sequential([layers.Embedding(600000, 512), layers.GlobalAveragePooling1D(), layers.Dense(2)])
m.build((None, 40))
"""


@scenario("whole-dataset-01-tf-eager-const.log", 800)
def eager_const():
    """
import numpy as np
import tensorflow as tf
images = np.zeros((21000, 64, 64, 3), np.float32)
with tf.device("/CPU:0"):
    x = tf.convert_to_tensor(images)
    y = x / 255.0
"""


@scenario("whole-dataset-02-tf-from-slices.log", 1200)
def from_slices():
    """
import numpy as np
import tensorflow as tf
images = np.zeros((18000, 64, 64, 3), np.float32)
a = tf.constant(images)
ds = tf.data.Dataset.from_tensor_slices(tf.image.per_image_standardization(a)).batch(8)
for batch in ds.take(1):
    pass
"""


@scenario("fragmentation-01-tf-pool.log", 512)
def pool():
    """
import tensorflow as tf
keep = [tf.zeros([4, 1024, 1024], tf.float32) for _ in range(31)]
for i in range(0, 31, 2):
    keep[i] = None
big = tf.zeros([20, 1024, 1024], tf.float32)
"""


@scenario("leak-graph-01-keras-models-in-a-loop.log", 900)
def models_in_a_loop():
    """
import numpy as np
import keras
from keras import layers
kept = []
for trial in range(200):
    m = keras.Sequential([keras.Input((1024,)), layers.Dense(2048, activation="relu"), layers.Dense(3)])
    m.compile("sgd", "mse", jit_compile=False)
    m.fit(np.zeros((64, 1024), "float32"), np.zeros((64, 3), "float32"), batch_size=64, verbose=0)
    kept.append(m)
"""


@scenario("graphdef-2gb-01-tf1-constant.log", 0)
def graphdef():
    """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
table = np.zeros((4600000, 120), np.float32)
embedding = tf.get_variable("words", initializer=tf.constant(table))
"""


@scenario("corrupt-input-01-tf-decode.log", 0)
def decode():
    """
import numpy as np
import tensorflow as tf
good = tf.io.encode_jpeg(np.random.randint(0, 255, (360, 480, 3), np.uint8)).numpy()
open("/tmp/img_0831.jpg", "wb").write(good[: len(good) // 2])
ds = tf.data.Dataset.from_tensor_slices(["/tmp/img_0831.jpg"])
ds = ds.map(lambda f: tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(f)), (224, 224)))
for image in ds:
    pass
"""


DROP = re.compile(r"(Bin \(|Chunk at|InUse at|Free  at|Next region|Bin for |rebuild TensorFlow|oneDNN "
                  r"custom|cpu_feature_guard|computation placer|cuda_platform|CUDA|cuInit|XLA service|"
                  r"cuda_dnn|cuda_fft|cuda_blas|absl::Init|StreamExecutor)")


def cut(text):
    """Keeps two lines of each long run of the chunk list, at most 9 KB."""
    out, runs = [], {}
    for line in text.splitlines():
        hit = DROP.search(line)
        if hit:
            runs[hit.group(1)] = runs.get(hit.group(1), 0) + 1
            if runs[hit.group(1)] > 2 or "at" not in hit.group(1):
                continue
        line = re.sub(r"/[^\s\"']*/site-packages/", "/usr/lib/python3/site-packages/", line)
        line = re.sub(r"File \"/[^\"]*/(train\.py)\"", r'File "\1"', line)
        out.append(line)
    text = "\n".join(out) + "\n"
    return text if len(text) <= 9000 else text[:3000] + "[...]\n" + text[-5900:]


def run(name):
    limit, body = SCENARIOS[name]
    work = "/tmp/oom-logs"
    os.makedirs(work, exist_ok=True)
    script = os.path.join(work, "train.py")
    with open(script, "w") as f:
        f.write(body.lstrip())
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")
    if limit:
        env.update(TF_CPU_ALLOCATOR_USE_BFC="1", TF_CPU_BFC_MEM_LIMIT_IN_MB=str(limit))
    done = subprocess.run([sys.executable, script], env=env, cwd=work, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    text = cut(done.stdout)
    with open(os.path.join(OUT, name), "w") as f:
        f.write(text)
    print(name, "exit", done.returncode, len(text), "bytes")


for wanted in sys.argv[1:] or SCENARIOS:
    run(wanted)
