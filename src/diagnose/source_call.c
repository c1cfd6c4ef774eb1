/* SPDX-License-Identifier: Apache-2.0
 *
 * source_call.c - what a call gives: functions of the file itself first, then what is known of
 * NumPy, PIL, OpenCV, tf.data, Keras and PyTorch by the called name. Families are tried in the
 * order of the table at the end; the first that knows the name wins.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/source_scan.h"

/* A call taken apart once. */
typedef struct call {
    const sn_py_node *node;
    char path[128];   /* "tf.data.Dataset.from_tensor_slices" */
    const char *name; /* the last part: into the source */
    size_t n_name;
    const sn_py_node *receiver; /* what stands before the last dot, NULL if nothing */
    sn_value on;                /* its value */
    sn_value args[SN_SRC_CALLS];
    size_t n_args; /* positional ones */
    const sn_py_node *nodes[SN_SRC_CALLS];
    sn_value best; /* the most telling argument, keywords included */
    uint32_t line;
} call;

static bool named(const call *c, const char *list)
{
    return sn_src_one_of(c->name, c->n_name, list);
}

/* The keyword's value, or the positional one; UNKNOWN if absent. */
static sn_value argument(sn_scan *scan, const call *c, size_t index, const char *keyword)
{
    for (const sn_py_node *p = c->node->list; p; p = p->next)
        if (p->kind == SN_PY_KW && keyword && sn_py_is(p, keyword))
            return sn_src_eval(scan, p->a);
    return index < c->n_args && index < SN_SRC_CALLS ? c->args[index]
                                                     : sn_src_value(SN_V_UNKNOWN, c->line);
}

static unsigned width_of(const sn_py_node *node)
{
    char path[128];
    if (!node)
        return 0;
    if (node->kind == SN_PY_STRING)
        snprintf(path, sizeof path, "%.*s", (int)SN_MIN(node->n, 60), node->s);
    else
        sn_py_path(path, sizeof path, node);
    if (sn_src_mentions(path, "float64|double|int64|complex64|long"))
        return 8;
    if (sn_src_mentions(path, "float16|half|int16|bfloat16"))
        return 2;
    if (sn_src_mentions(path, "uint8|int8|bool|byte"))
        return 1;
    if (sn_src_mentions(path, "float32|int32|float|int"))
        return sn_str_eq(path, "float") || sn_str_eq(path, "int") ? 8 : 4;
    return 0;
}

static unsigned dtype(const call *c, size_t index)
{
    return width_of(sn_py_arg(c->node, index, "dtype"));
}

/* Height, width (and channels 3 where missing) of a size argument. */
static void set_size(sn_value *image, const sn_value *size, unsigned channels)
{
    if (size->kind == SN_V_INT && size->count > 0) {
        image->dims[0] = image->dims[1] = size->count;
    } else if (size->kind == SN_V_DIMS && size->n_dims >= 2) {
        image->dims[0] = size->dims[0];
        image->dims[1] = size->dims[1];
        if (size->n_dims >= 3 && size->dims[2] > 0)
            channels = (unsigned)SN_MIN(size->dims[2], 4096);
    } else {
        return;
    }
    image->dims[2] = channels;
    image->n_dims = 3;
}

/* "dice_loss", "cross_entropy": what such a function gives is a loss. */
static bool loss_name(const call *c)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)SN_MIN(c->n_name, (size_t)60), c->name);
    return sn_src_mentions(name, "loss|criterion|cross_entropy|kl_div|objective") &&
           !sn_src_mentions(name, "plot|log|print|save|update|avg|average|mean_|record|write|"
                                  "track|append|add_|set_|load|logger|meter|history|losses");
}

/* ---- functions, methods and classes of the file ---- */

static sn_value enter(sn_scan *scan, const call *c, sn_func *f, bool method)
{
    size_t shift = method ? 1 : 0;
    for (size_t i = 0; i < c->n_args && i + shift < SN_SRC_PARAMS; i++)
        if (f->params[i + shift].kind == SN_V_UNKNOWN)
            f->params[i + shift] = c->args[i];
    for (const sn_py_node *k = c->node->list; k; k = k->next) {
        size_t i = 0;
        for (const sn_py_node *p = f->def->params; p && i < SN_SRC_PARAMS; p = p->next, i++)
            if (k->kind == SN_PY_KW && p->n == k->n && k->n && !memcmp(p->s, k->s, k->n) &&
                f->params[i].kind == SN_V_UNKNOWN)
                f->params[i] = sn_src_eval(scan, k->a);
    }
    if (scan->no_grad || scan->grad_off)
        f->called_no_grad = true;
    else
        f->called_grad = true;
    for (unsigned i = 0; i < scan->n_loops; i++) {
        sn_loop *loop = &scan->loops[i];
        loop->clears = loop->clears || f->clears;
        loop->fits = loop->fits || f->fits;
    }
    if (scan->n_loops && f->builds && !f->clears)
        scan->loops[scan->n_loops - 1].build_line = c->line;
    scan->saw_decode = scan->saw_decode || f->decodes;
    if (scan->func) {
        scan->func->decodes = scan->func->decodes || f->decodes;
        scan->func->fits = scan->func->fits || f->fits;
        scan->func->builds = scan->func->builds || f->builds;
        scan->func->clears = scan->func->clears || f->clears;
    }
    sn_value v = f->result;
    if (f->yields)
        v = sn_src_value(SN_V_UNKNOWN, c->line);
    if ((scan->no_grad || scan->grad_off) && (v.kind == SN_V_LOSS || v.kind == SN_V_OUT))
        v.grad = false;
    return v;
}

static sn_func *method_of(const sn_scan *scan, const sn_class *class, const call *c)
{
    for (sn_func *f = scan->funcs; f; f = f->next)
        if (f->class == class && f->def->n == c->n_name && !memcmp(f->def->s, c->name, c->n_name))
            return f;
    return NULL;
}

static bool own_call(sn_scan *scan, const call *c, sn_value *out)
{
    sn_func *f = NULL;
    bool method = false;
    if (!c->receiver) {
        sn_value v = sn_src_lookup(scan, c->path);
        if (v.kind == SN_V_CLASS) {
            *out = sn_src_value(SN_V_OBJECT, c->line);
            out->class = v.class;
            if (v.class->torch_model || v.class->keras_model) {
                out->kind = SN_V_MODEL;
                out->keras = v.class->keras_model;
            }
            sn_func *init = NULL;
            for (sn_func *p = scan->funcs; p; p = p->next)
                if (p->class == v.class && sn_py_stmt_is(p->def, "__init__"))
                    init = p;
            if (init)
                enter(scan, c, init, true);
            if (out->keras && scan->n_loops)
                scan->loops[scan->n_loops - 1].build_line = c->line;
            return true;
        }
        if (v.kind == SN_V_FUNC && v.func)
            f = v.func;
    } else if (sn_py_is(c->receiver, "self") && scan->class) {
        f = method_of(scan, scan->class, c);
        method = true;
    } else if (c->on.kind == SN_V_OBJECT || (c->on.kind == SN_V_MODEL && c->on.class)) {
        f = method_of(scan, c->on.class, c);
        method = true;
    }
    if (!f || (method && c->on.kind == SN_V_MODEL && named(c, "eval|train|fit|predict")))
        return false;
    *out = enter(scan, c, f, method);
    if (out->kind == SN_V_UNKNOWN && scan->torch && loss_name(c) && !f->yields) {
        out->kind = SN_V_LOSS;
        out->grad = !scan->no_grad && !scan->grad_off;
    }
    return true;
}

/* ---- names of files, numbers, small things ---- */

static bool plain_call(sn_scan *scan, const call *c, sn_value *out)
{
    sn_value v = sn_src_value(SN_V_UNKNOWN, c->line);
    if (named(c, "glob|iglob|rglob|listdir|scandir|iterdir|walk|get_image_files|list_images|"
                 "list_pictures|get_files")) {
        v.kind = SN_V_FILES;
    } else if (named(c, "len") && !c->receiver) {
        v.kind = SN_V_INT;
        v.certain = c->n_args && (c->args[0].kind == SN_V_FILES || c->args[0].kind == SN_V_SET);
        v.count = c->n_args && c->args[0].kind != SN_V_INT ? c->args[0].count : -1;
    } else if (named(c, "range|arange") && c->n_args) {
        v.kind = SN_V_RANGE;
        const sn_value *last = &c->args[c->n_args > 1 ? 1 : 0];
        v.count = last->kind == SN_V_INT ? last->count : -1;
    } else if (named(c, "int|min|max|round|abs|ceil|floor") && c->n_args && !c->receiver) {
        v = c->args[0];
        if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT)
            v = sn_src_value(SN_V_PLAIN, c->line);
    } else if (named(c, "float|bool|print|isinstance|hash|id") && !c->receiver) {
        v.kind = SN_V_PLAIN;
    } else if (named(c, "enumerate|zip|list|tuple|sorted|reversed|set|tqdm|shuffle|sample|iter|"
                        "shuffled|natsorted|track|deepcopy|Parallel|imap|starmap") &&
               c->on.kind == SN_V_UNKNOWN) {
        v = c->best.kind == SN_V_IMAGE ? v : c->best;
        if (named(c, "list") && c->n_args && c->args[0].kind == SN_V_TFDATA && c->args[0].decoded &&
            !c->args[0].small && c->args[0].count != 0) {
            v = c->args[0];
            v.kind = SN_V_SET;
            v.count = -1;
            v.certain = true;
            v.array = false;
            sn_src_check_convert(scan, "list()", &v, c->line);
        }
    } else if (named(c, "map") && c->n_args >= 2) { /* map(load, files), also of an executor */
        v = c->args[0].kind == SN_V_FUNC && c->args[0].func ? c->args[0].func->result : v;
        if (v.kind == SN_V_IMAGE && c->args[1].kind == SN_V_FILES && !c->args[1].bounded &&
            !sn_src_bounded(scan)) {
            v.kind = SN_V_SET;
            v.certain = true;
            v.line = c->line;
        }
    } else if (named(c, "join|Path|str|fspath|format|decode|abspath|numpy_function") &&
               (c->best.kind == SN_V_FILE || c->on.kind == SN_V_FILE)) {
        v.kind = SN_V_FILE;
    } else if (named(c, "train_test_split")) {
        v = c->best;
    } else {
        return false;
    }
    *out = v;
    return true;
}

/* ---- reading and changing samples ---- */

static sn_value decoded(sn_scan *scan, const call *c, unsigned width)
{
    sn_value v = sn_src_value(SN_V_IMAGE, c->line);
    v.width = width;
    v.certain = true;
    sn_value size = argument(scan, c, 99, "target_size");
    if (size.kind == SN_V_UNKNOWN)
        size = argument(scan, c, 99, "size");
    set_size(&v, &size, 3);
    scan->saw_decode = true;
    if (scan->func)
        scan->func->decodes = true;
    return v;
}

static bool small_name(const sn_value *text)
{
    char name[96] = "";
    if (text->kind == SN_V_TEXT)
        snprintf(name, sizeof name, "%.*s", (int)SN_MIN(text->n_text, 90), text->text);
    return sn_src_mentions(name, "label|target|mnist|cifar|iris|mean|std|embed|weight|vocab|y_|"
                                 "y.np|index|idx|class|ids|anno|meta|toy|tiny|small|split|fold");
}

static bool load_call(sn_scan *scan, const call *c, sn_value *out)
{
    bool pil = named(c, "open") && sn_src_mentions(c->path, "image.open|pil.");
    if (pil || named(c, "imread|load_img|imdecode|decode_jpeg|decode_png|decode_image|decode_bmp|"
                        "decode_gif|decode_and_crop_jpeg|read_image|default_loader|pil_loader|"
                        "dcmread|get_fdata|load_image|imread_v2|read_rgb")) {
        *out = decoded(scan, c, 1);
    } else if (sn_src_mentions(c->path, "librosa.load|wavfile.read|torchaudio.load|sf.read|"
                                        "soundfile.read|nib.load|sitk.readimage")) {
        *out = decoded(scan, c, 4);
    } else if (named(c, "load|fromfile|loadtxt|genfromtxt") &&
               (sn_str_starts(c->path, "np.") || sn_str_starts(c->path, "numpy."))) {
        if (sn_py_arg(c->node, 1, "mmap_mode") &&
            !sn_py_is(sn_py_arg(c->node, 1, "mmap_mode"), "None"))
            return *out = sn_src_value(SN_V_PLAIN, c->line), true;
        if (c->n_args && c->args[0].kind == SN_V_FILE) { /* one of many */
            *out = decoded(scan, c, 0);
            return true;
        }
        *out = sn_src_value(SN_V_SET, c->line);
        out->array = true;
        out->small = (c->n_args && small_name(&c->args[0])) || named(c, "loadtxt|genfromtxt");
    } else if (named(c, "File") && sn_src_mentions(c->path, "h5py|h5")) {
        *out = sn_src_value(SN_V_H5, c->line);
    } else if (named(c, "load_data")) {
        *out = sn_src_value(SN_V_SET, c->line);
        out->array = out->small = true;
    } else {
        return false;
    }
    return true;
}

/* Whether the called name was bound to a Compose() of transforms. */
static bool transform(sn_scan *scan, const call *c)
{
    sn_value callee = sn_src_lookup(scan, c->path);
    return callee.kind == SN_V_FUNC && !callee.func && !callee.lambda;
}

static bool image_call(sn_scan *scan, const call *c, sn_value *out)
{
    bool method = c->on.kind == SN_V_IMAGE || c->on.kind == SN_V_SET;
    sn_value v = method ? c->on : c->n_args ? c->args[0] : sn_src_value(SN_V_UNKNOWN, c->line);
    if (v.kind != SN_V_IMAGE && v.kind != SN_V_SET)
        return false;
    if (named(c, "mean|sum|std|max|min|argmax|predict|item|save|close|show|imshow|extract|median|"
                 "histogram|shape|embed|encode_image|append|add_image|tobytes|hash"))
        return false;
    if (named(c, "resize|Resize|resize_with_pad|thumbnail|resize_with_crop_or_pad|imresize|"
                 "central_crop|crop_to_bounding_box")) {
        sn_value size = argument(scan, c, method ? 0 : 1, "size");
        if (size.kind == SN_V_UNKNOWN)
            size = argument(scan, c, 99, "output_shape");
        set_size(&v, &size, 3);
        if (sn_str_starts(c->path, "tf."))
            v.width = 4;
    } else if (named(c,
                     "astype|cast|asarray|array|convert_image_dtype|ascontiguousarray|float32")) {
        unsigned w = dtype(c, method ? 0 : 1);
        v.width = w ? w : named(c, "float32") ? 4 : v.width;
    } else if (named(c, "img_to_array|to_tensor|ToTensor|float|float_")) {
        v.width = 4;
    } else if (named(c, "convert")) {
        if (v.n_dims == 3 && c->n_args && c->args[0].kind == SN_V_TEXT)
            v.dims[2] = c->args[0].n_text == 1 ? 1 : 3;
    } else if (c->n_args && transform(scan, c)) {
        v.width = 4;
    } else if (!named(c, "expand_dims|squeeze|reshape|transpose|copy|permute|flatten|ravel|clip|"
                         "cvtColor|flip|rotate|swapaxes|moveaxis|numpy|unsqueeze|set_shape|"
                         "ensure_shape|fromarray|crop|blur|GaussianBlur|normalize|tensor|"
                         "from_numpy|convert_to_tensor|stack|concatenate|vstack|as_tensor|"
                         "contiguous|per_image_standardization|constant") &&
               !sn_src_mentions(c->path, "transform|tfm|process|augment|normaliz|crop|pad|"
                                         "random_flip|decode|adjust")) {
        return false;
    }
    if (v.kind == SN_V_SET && !method)
        sn_src_check_convert(scan, c->path, &v, c->line);
    if (v.kind == SN_V_SET && named(c, "array|asarray|stack|concatenate|vstack|tensor|from_numpy|"
                                       "convert_to_tensor|constant|as_tensor"))
        v.array = true;
    if (v.kind == SN_V_SET && named(c, "tensor|from_numpy|as_tensor") && v.width == 0)
        v.width = 4;
    *out = v;
    return true;
}

static bool convert_call(sn_scan *scan, const call *c, sn_value *out)
{
    if (!named(c, "convert_to_tensor|constant|Variable|tensor|as_tensor|from_numpy|FloatTensor|"
                  "TensorDataset|from_tensor_slices|from_tensors|array|asarray|stack|vstack|hstack|"
                  "concatenate|cat|concat|dstack|Tensor|device_put"))
        return false;
    sn_value v = c->best;
    if (v.kind == SN_V_SET)
        sn_src_check_convert(scan, c->path, &v, c->line);
    if (named(c, "from_tensor_slices|from_tensors")) {
        bool small = v.kind == SN_V_SET ? sn_src_is_small(&v) : v.small;
        sn_value set = v;
        *out = sn_src_value(SN_V_TFDATA, c->line);
        if (set.kind == SN_V_SET) {
            memcpy(out->dims, set.dims, sizeof out->dims);
            out->n_dims = set.n_dims;
            out->width = set.width;
            out->decoded = true;
        }
        out->small = small || set.kind == SN_V_SET; /* the alarm stands already */
        return true;
    }
    if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT) {
        *out = v;
        return true;
    }
    *out = v.kind == SN_V_SET ? v : sn_src_value(SN_V_UNKNOWN, c->line);
    if (v.kind == SN_V_SET)
        out->array = true;
    return true;
}

/* np.zeros((50000, 224, 224, 3)) and its kin. */
static bool shaped_call(sn_scan *scan, const call *c, sn_value *out)
{
    bool np = sn_str_starts(c->path, "np.") || sn_str_starts(c->path, "numpy.");
    bool tf = sn_str_starts(c->path, "tf.") || sn_str_starts(c->path, "torch.");
    bool random = named(c, "rand|randn");
    if ((!np && !tf) || !named(c, "zeros|ones|empty|full|rand|randn|random|normal|uniform|randint|"
                                  "random_sample|standard_normal"))
        return false;
    sn_value shape = random && c->n_args > 1 ? sn_src_value(SN_V_DIMS, c->line)
                                             : argument(scan, c, 0, tf ? "shape" : "size");
    if (random && c->n_args > 1) {
        for (size_t i = 0; i < c->n_args && i < 6; i++)
            shape.dims[shape.n_dims++] = c->args[i].kind == SN_V_INT ? c->args[i].count : -1;
    } else if (shape.kind != SN_V_DIMS) {
        shape = argument(scan, c, 99, np ? "size" : "shape");
    }
    *out = sn_src_value(SN_V_UNKNOWN, c->line);
    if (shape.kind != SN_V_DIMS || shape.n_dims < 2)
        return true;
    *out = sn_src_value(SN_V_SET, c->line);
    out->array = true;
    out->count = shape.dims[0];
    out->n_dims = shape.n_dims - 1;
    memcpy(out->dims, shape.dims + 1, out->n_dims * sizeof *out->dims);
    out->width = dtype(c, named(c, "zeros|ones|empty") ? 1 : 99);
    if (!out->width)
        out->width = np ? 8 : 4;
    const sn_py_node *first = sn_py_arg(c->node, 0, tf ? "shape" : "size");
    char path[128];
    sn_py_path(path, sizeof path, first && first->list && !random ? first->list : first);
    if (sn_src_bounded(scan) || sn_src_mentions(path, "batch|bs"))
        out->small = out->count < 0;
    sn_src_check_array(scan, out, c->path, c->line);
    return true;
}

/* ---- tf.data ---- */

static bool tf_source(sn_scan *scan, const call *c, sn_value *out)
{
    sn_value v = sn_src_value(SN_V_TFDATA, c->line);
    v.count = 1;
    if (named(c, "list_files") || (named(c, "TextLineDataset"))) {
        v.small = named(c, "TextLineDataset");
    } else if (named(c, "TFRecordDataset|FixedLengthRecordDataset")) {
        v.records = true;
    } else if (named(c, "image_dataset_from_directory")) {
        sn_value size = argument(scan, c, 99, "image_size"),
                 batch = argument(scan, c, 99, "batch_size");
        v.decoded = true;
        v.dims[0] = v.dims[1] = 256;
        v.dims[2] = 3;
        v.n_dims = 3;
        set_size(&v, &size, 3);
        v.width = 4;
        v.count = batch.kind == SN_V_INT && batch.count > 0 ? batch.count : 32;
        const sn_py_node *none = sn_py_arg(c->node, 99, "batch_size");
        if (none && sn_py_is(none, "None"))
            v.count = 1;
    } else if (named(c, "from_generator")) {
        v.decoded = true;
    } else if (named(c, "load") && sn_str_starts(c->path, "tfds.")) {
        char name[64] = "";
        if (c->n_args && c->args[0].kind == SN_V_TEXT)
            snprintf(name, sizeof name, "%.*s", (int)SN_MIN(c->args[0].n_text, 60),
                     c->args[0].text);
        v.decoded = true;
        v.small = sn_src_mentions(name, "mnist|cifar|svhn|iris|titanic|imdb|ag_news|digits|wine");
    } else {
        return false;
    }
    *out = v;
    return true;
}

/* What map(f) makes of the elements: sets decoded and the sample's size. */
static void map_elements(sn_scan *scan, const call *c, sn_value *v)
{
    const sn_value *f = &c->args[0];
    char path[128] = "";
    sn_value made = sn_src_value(SN_V_UNKNOWN, c->line);
    bool decodes = false;
    if (!c->n_args)
        return;
    if (f->kind == SN_V_FUNC && f->func) {
        decodes = f->func->decodes;
        made = f->func->result;
    } else if (f->kind == SN_V_FUNC && f->lambda) {
        bool saved = scan->saw_decode;
        for (const sn_py_node *p = f->lambda->list; p && !v->decoded; p = p->next)
            sn_src_bind_target(scan, p, sn_src_value(SN_V_UNKNOWN, p->line));
        scan->saw_decode = false;
        made = sn_src_eval(scan, f->lambda->a);
        decodes = made.kind == SN_V_IMAGE || scan->saw_decode;
        scan->saw_decode = scan->saw_decode || saved;
    } else if (c->nodes[0]) {
        sn_py_path(path, sizeof path, c->nodes[0]);
        decodes = !v->decoded && sn_src_mentions(path, "load|decode|pars|process|image|read");
    }
    v->decoded = v->decoded || decodes;
    if (decodes)
        v->records = false;
    if (made.kind == SN_V_IMAGE && made.n_dims) {
        memcpy(v->dims, made.dims, sizeof v->dims);
        v->n_dims = made.n_dims;
        v->width = made.width ? made.width : v->width;
    }
}

static bool tf_method(sn_scan *scan, const call *c, sn_value *out)
{
    sn_value v = c->on;
    if (!c->receiver)
        return false;
    if (v.kind == SN_V_UNKNOWN && scan->tensorflow && named(c, "map") && c->n_args == 1 &&
        c->args[0].kind == SN_V_FUNC) {
        v = sn_src_value(SN_V_TFDATA, c->line);
        v.count = 1;
        map_elements(scan, c, &v);
        if (!v.decoded)
            v.small = true; /* nothing is known of its elements */
        *out = v;
        return true;
    }
    if (v.kind != SN_V_TFDATA)
        return false;
    if (named(c, "map|interleave|flat_map|filter|apply")) {
        if (named(c, "map"))
            map_elements(scan, c, &v);
        else if (c->nodes[0] && c->nodes[0]->kind == SN_PY_ATTR &&
                 sn_py_is(c->nodes[0], "TFRecordDataset"))
            v.records = true;
    } else if (named(c, "batch|padded_batch|ragged_batch")) {
        sn_value n = argument(scan, c, 0, "batch_size");
        int64_t before = v.count > 0 ? v.count : 1;
        uint64_t sample = sn_src_sample_bytes(&v);
        int64_t each = n.kind == SN_V_INT && n.count > 0 ? n.count : 32;
        if (__builtin_mul_overflow(each, before, &v.count))
            v.count = -1; /* more than there can be: not known */
        if (n.kind == SN_V_INT && n.count < 0 && n.certain && v.decoded && !v.small)
            sn_src_report(scan, SN_TRAP_CONVERT, 0, c->line, v.line,
                          "The batch is as long as the list of files: one element of the pipeline "
                          "is the whole data set.");
        else if (n.kind == SN_V_INT && sample && !v.small &&
                 (double)n.count * (double)sample > 2 * (double)SN_GIB)
            sn_src_report(scan, SN_TRAP_HUGE_BATCH, 0, c->line, 0,
                          "One batch of %" PRId64 " samples takes %.1f GiB before the first layer.",
                          n.count, (double)n.count * (double)sample / (double)SN_GIB);
    } else if (named(c, "unbatch")) {
        v.count = 1;
    } else if (named(c, "take")) {
        sn_value n = argument(scan, c, 0, "count");
        if (n.kind == SN_V_INT && n.count >= 0 && n.count <= 2048)
            v.small = true;
    } else if (named(c, "cache")) {
        sn_src_check_cache(scan, &v, c->node);
    } else if (named(c, "shuffle")) {
        sn_value n = argument(scan, c, 0, "buffer_size");
        sn_src_check_shuffle(scan, &v, &n, c->node);
    } else if (named(c, "as_numpy_iterator")) {
        *out = v;
        return true;
    } else if (!named(c, "prefetch|repeat|skip|shard|with_options|enumerate|snapshot|rebatch|"
                         "ignore_errors|window|concatenate|assert_cardinality|zip")) {
        return false;
    }
    *out = v;
    return true;
}

/* ---- Keras and TensorFlow ---- */

static bool keras_call(sn_scan *scan, const call *c, sn_value *out)
{
    *out = sn_src_value(SN_V_UNKNOWN, c->line);
    if (named(c, "clear_session|reset_default_graph|reset_states")) {
        for (unsigned i = 0; i < scan->n_loops; i++)
            scan->loops[i].clears = true;
        if (scan->func)
            scan->func->clears = true;
        return true;
    }
    bool torch = sn_str_starts(c->path, "nn.") || sn_str_starts(c->path, "torch");
    bool keras = scan->tensorflow && !torch;
    if (keras && !c->receiver && named(c, "build_model|create_model|get_model|make_model")) {
        out->kind = SN_V_MODEL;
        out->keras = true;
        if (scan->n_loops)
            scan->loops[scan->n_loops - 1].build_line = c->line;
        return true;
    }
    if (keras && (named(c, "Sequential|Model|clone_model|load_model|model_from_json|from_config") ||
                  sn_src_mentions(c->path, "applications."))) {
        if (c->receiver && named(c, "Model|Sequential") &&
            !sn_src_mentions(c->path, "keras|models|tf."))
            return false;
        out->kind = SN_V_MODEL;
        out->keras = true;
        if (scan->n_loops)
            scan->loops[scan->n_loops - 1].build_line = c->line;
        else if (scan->func)
            scan->func->builds = true;
        return true;
    }
    if (named(c, "fit|fit_generator|train_on_batch|evaluate|predict|flow|fit_transform")) {
        if (named(c, "fit|evaluate|predict|flow")) {
            sn_value x = argument(scan, c, 0, "x");
            if (x.kind == SN_V_SET)
                sn_src_check_fit(scan, c->path, &x, c->line);
        }
        for (unsigned i = 0; i < scan->n_loops; i++)
            scan->loops[i].fits = true;
        if (scan->func)
            scan->func->fits = true;
        return !scan->torch || c->on.keras;
    }
    if (named(c, "run") && scan->n_loops && sn_src_mentions(c->path, "sess")) {
        const sn_py_node *first = c->nodes[0];
        char path[128] = "";
        if (first && (first->kind == SN_PY_LIST || first->kind == SN_PY_TUPLE))
            first = first->list;
        if (first && first->kind == SN_PY_CALL)
            sn_py_path(path, sizeof path, first);
        if (sn_str_starts(path, "tf.") || sn_str_ends(path, ".assign"))
            sn_src_report(scan, SN_TRAP_GRAPH_OPS, 0, c->line, 0,
                          "%s(...) inside sess.run() makes a new operation in the graph at each "
                          "turn of the loop; the graph, and memory, grow without end.",
                          path);
        return true;
    }
    return false;
}

/* ---- PyTorch ---- */

static sn_value torch_model(sn_scan *scan, const call *c)
{
    sn_value v = sn_src_value(SN_V_OUT, c->line);
    v.grad = !scan->no_grad && !scan->grad_off;
    v.device = scan->cuda;
    if (scan->n_loops) {
        sn_loop *loop = &scan->loops[scan->n_loops - 1];
        if (v.grad && !loop->model_line)
            loop->model_line = c->line;
    }
    return v;
}

static bool torch_call(sn_scan *scan, const call *c, sn_value *out)
{
    if (!scan->torch)
        return false;
    *out = sn_src_value(SN_V_UNKNOWN, c->line);
    if (named(c, "backward|manual_backward")) {
        const sn_py_node *retain = sn_py_arg(c->node, 99, "retain_graph");
        bool first_retain = retain && sn_py_is(retain, "True");
        for (unsigned i = 0; i < scan->n_loops; i++)
            scan->loops[i].backward = true;
        if (scan->n_loops) {
            sn_loop *loop = &scan->loops[scan->n_loops - 1];
            if (first_retain && !loop->retain_line)
                loop->retain_line = c->line;
            else if (!first_retain)
                loop->plain_backward = true;
        }
        return true;
    }
    if (named(c, "Compose")) { /* a transform: gives images for images */
        out->kind = SN_V_FUNC;
        return true;
    }
    if (named(c, "DataLoader")) {
        sn_value workers = argument(scan, c, 99, "num_workers"),
                 set = argument(scan, c, 0, "dataset");
        sn_value batch = argument(scan, c, 1, "batch_size");
        out->kind = SN_V_LOADER;
        out->class = set.class;
        unsigned n = workers.kind == SN_V_INT && workers.count >= 0
                         ? (unsigned)SN_MIN(workers.count, 100000)
                     : sn_py_arg(c->node, 99, "num_workers") ? 1
                                                             : 0;
        if (n > scan->workers) {
            scan->workers = n;
            scan->workers_line = c->line;
        }
        if (n >= 32)
            sn_src_report(scan, SN_TRAP_MANY_WORKERS, 0, c->line, 0,
                          "%u worker processes, each with an interpreter of about 0.3 GiB, its "
                          "prefetched batches and a copy of the data set object.",
                          n);
        if (n && set.kind == SN_V_SET && !set.array && !sn_src_is_small(&set))
            sn_src_report(scan, SN_TRAP_WORKERS, 0, set.line, c->line,
                          "The list made here goes to a DataLoader with %u worker processes: each "
                          "ends with a copy of it (%s).",
                          n, sn_src_size_text(scan, &set));
        if (batch.kind == SN_V_INT && batch.count < 0 && batch.certain)
            sn_src_report(
                scan, SN_TRAP_CONVERT, 0.5, c->line, 0,
                "batch_size is the length of the data set: the one batch is the whole set.");
        return true;
    }
    if (named(c, "eval|train") && c->receiver && !c->n_args &&
        (c->on.kind == SN_V_MODEL || sn_src_mentions(c->path, "model|net"))) {
        scan->evaluating = named(c, "eval");
        *out = c->on;
        return true;
    }
    if (named(c, "train") && c->on.kind == SN_V_MODEL) {
        scan->evaluating = c->nodes[0] && sn_py_is(c->nodes[0], "False");
        return true;
    }
    if (named(c, "set_grad_enabled") && c->nodes[0]) {
        scan->grad_off = sn_py_is(c->nodes[0], "False");
        return true;
    }
    if ((sn_str_starts(c->path, "nn.Sequential") || sn_str_starts(c->path, "torch.nn.Sequential") ||
         (sn_src_mentions(c->path, "models.") && !sn_str_starts(c->path, "tf.")) ||
         named(c, "create_model|from_pretrained|DataParallel|DistributedDataParallel|DDP|"
                  "segmentation")) &&
        c->on.kind == SN_V_UNKNOWN) {
        out->kind = SN_V_MODEL;
        return true;
    }
    if (c->on.kind == SN_V_MODEL && !c->on.keras) {
        if (named(c, "to|cuda|cpu|half|float|compile|requires_grad_|share_memory|double")) {
            *out = c->on;
            return true;
        }
        if (named(c, "forward|encode|decode|extract_features|forward_features|encode_image")) {
            *out = torch_model(scan, c);
            return true;
        }
        return false;
    }
    sn_value callee = sn_src_lookup(scan, c->path);
    if (callee.kind == SN_V_MODEL && !callee.keras) {
        *out = torch_model(scan, c);
        return true;
    }
    bool constructs = c->n_name && c->name[0] >= 'A' && c->name[0] <= 'Z';
    bool lossy =
        callee.kind == SN_V_LOSSFN || c->on.kind == SN_V_LOSSFN || (!constructs && loss_name(c));
    if (constructs && (sn_str_ends(c->path, "Loss") || sn_src_mentions(c->path, "criterion"))) {
        out->kind = SN_V_LOSSFN;
        return true;
    }
    if (lossy) {
        out->kind = SN_V_LOSS;
        out->grad = !scan->no_grad && !scan->grad_off;
        out->device = scan->cuda;
        return true;
    }
    return false;
}

/* Methods of and functions over tensors with a graph. */
static bool tensor_call(sn_scan *scan, const call *c, sn_value *out)
{
    bool method = c->on.kind == SN_V_LOSS || c->on.kind == SN_V_OUT;
    sn_value v = method ? c->on : c->best;
    if (!scan->torch || (v.kind != SN_V_LOSS && v.kind != SN_V_OUT))
        return false;
    if (named(c, "item|tolist|numpy|float|int|size|dim|append|extend|add|update|numel|print|format|"
                 "accuracy_score|step|log|write|set_postfix|set_description|scale")) {
        if (named(c, "append|extend|add|scale"))
            return false;
        *out = sn_src_value(SN_V_PLAIN, c->line);
        return true;
    }
    if (named(c, "detach|no_grad|clone")) {
        v.grad = named(c, "clone") ? v.grad : false;
    } else if (named(c, "cpu") || (named(c, "to") && c->n_args && c->args[0].kind == SN_V_TEXT &&
                                   c->args[0].n_text == 3 && !memcmp(c->args[0].text, "cpu", 3))) {
        v.device = false;
    } else if (named(c, "argmax|argsort|eq|ge|gt|topk|max|round|ne")) {
        v.grad = false;
        v.kind = SN_V_OUT;
    } else if (!method && !sn_str_starts(c->path, "torch.") && !sn_str_starts(c->path, "F.") &&
               !sn_str_starts(c->path, "nn.") && !named(c, "sum|list|tuple|zip")) {
        return false;
    }
    *out = v;
    return true;
}

/* ---- containers ---- */

static bool container_call(sn_scan *scan, const call *c, sn_value *out)
{
    char name[128];
    if (!c->receiver || !named(c, "append|extend|insert|add|appendleft|put|update") || !c->n_args)
        return false;
    sn_value v = c->args[c->n_args - 1];
    sn_py_path(name, sizeof name, c->receiver);
    *out = sn_src_value(SN_V_PLAIN, c->line);
    if (sn_src_one_of(name, strlen(name), "np|numpy|torch|tf"))
        return false;
    if (!name[0])
        return true;
    if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT) {
        if (!named(c, "update|put") || c->receiver->kind == SN_PY_SUB)
            sn_src_check_kept(scan, name, &v, c->line, false);
        return true;
    }
    const sn_py_node *last = c->n_args <= SN_SRC_CALLS ? c->nodes[c->n_args - 1] : NULL;
    if (last && last->kind == SN_PY_LIST && !named(c, "extend")) /* [image, label]: one sample */
        for (const sn_py_node *p = last->list; p && v.kind != SN_V_IMAGE; p = p->next)
            v = sn_src_eval(scan, p);
    bool sample = v.kind == SN_V_IMAGE || (v.kind == SN_V_SET && named(c, "extend"));
    if (!sample || named(c, "update|put"))
        return true;
    if (c->receiver->kind == SN_PY_SUB || sn_src_bounded(scan)) {
        return true;
    }
    if (scan->n_loops || named(c, "extend")) {
        v.kind = SN_V_SET;
        v.certain = true;
        v.array = v.decoded = false;
        v.line = c->line;
        v.count = -1;
        sn_src_rebind(scan, c->receiver, v);
    }
    return true;
}

static bool device_call(sn_scan *scan, const call *c, sn_value *out)
{
    if (c->on.kind != SN_V_SET || !named(c, "to|cuda"))
        return false;
    *out = c->on;
    if (scan->torch)
        sn_src_check_convert(scan, c->path, out, c->line);
    return true;
}

sn_value sn_src_call(sn_scan *scan, const sn_py_node *node)
{
    static bool (*const families[])(sn_scan *, const call *, sn_value *) = {
        own_call,   load_call,  tf_source,  tf_method,   plain_call,     shaped_call, device_call,
        image_call, keras_call, torch_call, tensor_call, container_call, convert_call};
    call c;
    memset(&c, 0, sizeof c);
    c.node = node;
    c.line = node->line;
    c.name = "";
    c.best = c.on = sn_src_value(SN_V_UNKNOWN, node->line);
    sn_py_path(c.path, sizeof c.path, node->a);
    if (node->a && (node->a->kind == SN_PY_NAME || node->a->kind == SN_PY_ATTR)) {
        c.name = node->a->s;
        c.n_name = node->a->n;
        c.line = node->a->line;
        if (node->a->kind == SN_PY_ATTR) {
            c.receiver = node->a->a;
            c.on = sn_src_eval(scan, c.receiver);
        }
    } else if (node->a) {
        sn_src_eval(scan, node->a);
    }
    for (const sn_py_node *p = node->list; p; p = p->next) {
        sn_value v = sn_src_eval(scan, p->kind == SN_PY_KW ? p->a : p);
        bool better = c.best.kind == SN_V_UNKNOWN || c.best.kind == SN_V_PLAIN ||
                      v.kind == SN_V_SET || v.kind == SN_V_LOSS ||
                      (v.kind == SN_V_OUT && c.best.kind != SN_V_LOSS);
        if (better && v.kind != SN_V_UNKNOWN)
            c.best = v;
        if (p->kind != SN_PY_KW && c.n_args < SN_SRC_CALLS) {
            c.nodes[c.n_args] = p;
            c.args[c.n_args++] = v;
        }
    }
    sn_value out = sn_src_value(SN_V_UNKNOWN, c.line);
    for (size_t i = 0; i < SN_LEN(families); i++)
        if (families[i](scan, &c, &out))
            return out;
    return sn_src_value(SN_V_UNKNOWN, c.line);
}
