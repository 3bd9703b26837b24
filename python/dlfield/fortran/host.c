/* What all functions share: Python is started, arrays are put into words, errors become text. */

#define DLFIELD_MAX_RANK 7
#define DLFIELD_REFUSED 1
#define DLFIELD_ABSENT INT64_C(-1)

/* A function: where Python has it, and what its arrays are. */
typedef struct {
    const char *name, *target, *signature;
    int fields;
    const int *types, *ranks, *bounds;
    PyObject *entry, *words;
} dlf_function;

/* What a thread brings into Python, and takes back. */
typedef struct {
    PyGILState_STATE python;
    fenv_t floats;
} dlf_thread;

/* Signals that Python handles or ignores. Only while it computes: between calls they are the
 * program's, so that Ctrl-C ends it, and a pipe that nobody reads. */
static const int dlf_signals[] = {SIGINT, SIGPIPE, SIGXFSZ};
#define DLF_SIGNALS 3
static struct sigaction dlf_of_python[DLF_SIGNALS];
static pthread_mutex_t dlf_signalling = PTHREAD_MUTEX_INITIALIZER;
static int dlf_computing, dlf_has_signals;

static pthread_mutex_t dlf_starting = PTHREAD_MUTEX_INITIALIZER;
static atomic_int dlf_ready;
static PyThreadState *dlf_main;
static char dlf_failure[1024];

/* Copies the text, as much of its beginning as there is room for, and returns the status. */
static int dlf_tell(int status, const char *text, char *message, size_t size)
{
    if (message != NULL && size > 0) {
        size_t length = strlen(text);
        if (length >= size) {
            length = size - 1;
            while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
                length--; /* not within a character */
        }
        memcpy(message, text, length);
        message[length] = '\0';
    }
    return status;
}

/* Hands the signals that the program leaves to the system to Python, and back after the last call. */
static void dlf_signals_of(int calls)
{
    int i, before;
    pthread_mutex_lock(&dlf_signalling);
    before = dlf_computing;
    dlf_computing += calls;
    for (i = 0; i < DLF_SIGNALS && dlf_has_signals && (before == 0 || dlf_computing == 0); i++) {
        struct sigaction now, ours = dlf_of_python[i];
        sigaction(dlf_signals[i], NULL, &now);
        if (before == 0 && now.sa_handler == SIG_DFL)
            sigaction(dlf_signals[i], &ours, NULL);
        if (dlf_computing == 0 && now.sa_handler == ours.sa_handler) {
            now.sa_handler = SIG_DFL;
            sigaction(dlf_signals[i], &now, NULL);
        }
    }
    pthread_mutex_unlock(&dlf_signalling);
}

/* Starts Python once. A failure is kept: after one, Python cannot be started any more. */
static void dlf_start(void)
{
    const char *chosen = getenv("DLFIELD_PYTHON");
    struct sigaction before[DLF_SIGNALS];
    int i;
    PyConfig config;
    PyStatus status;
    if (chosen != NULL && strchr(chosen, '/') != NULL && access(chosen, X_OK) != 0) {
        snprintf(dlf_failure, sizeof dlf_failure,
                 "dlfield: expected a Python in the environment variable DLFIELD_PYTHON, got '%s', "
                 "which cannot be run", chosen);
        return;
    }
    for (i = 0; i < DLF_SIGNALS; i++)
        sigaction(dlf_signals[i], NULL, &before[i]);
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    config.buffered_stdio = 0; /* nobody would flush at the end; and the order with Fortran's output */
    if (chosen == NULL || chosen[0] == '\0')
        chosen = DLFIELD_PYTHON;
    status = PyConfig_SetBytesString(&config, &config.program_name, chosen);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        snprintf(dlf_failure, sizeof dlf_failure,
                 "dlfield: expected a Python that starts, got '%s' from '%s'; see the environment "
                 "variables DLFIELD_PYTHON, PYTHONHOME and PYTHONPATH",
                 status.err_msg ? status.err_msg : "an exit", chosen);
        return;
    }
    for (i = 0; i < DLF_SIGNALS; i++) {
        sigaction(dlf_signals[i], NULL, &dlf_of_python[i]);
        sigaction(dlf_signals[i], &before[i], NULL);
    }
    dlf_has_signals = 1;
    dlf_main = PyEval_SaveThread();
    atomic_store(&dlf_ready, 1);
}

/* Detaches this thread, and gives it its own floating-point exceptions again. */
static void dlf_leave(dlf_thread *thread)
{
    PyGILState_Release(thread->python);
    fesetenv(&thread->floats);
}

/* Attaches this thread to Python, which is started if it was not. Traps of floating-point
 * exceptions are off until it leaves: Python and its libraries raise such exceptions on purpose. */
static int dlf_enter(dlf_thread *thread, char *message, size_t size)
{
    feholdexcept(&thread->floats);
    if (!atomic_load(&dlf_ready)) {
        pthread_mutex_lock(&dlf_starting);
        if (!atomic_load(&dlf_ready) && dlf_failure[0] == '\0') {
            if (Py_IsInitialized())
                atomic_store(&dlf_ready, 1); /* by the program itself */
            else
                dlf_start();
        }
        pthread_mutex_unlock(&dlf_starting);
        if (dlf_failure[0] != '\0') {
            fesetenv(&thread->floats);
            return dlf_tell(DLFIELD_REFUSED, dlf_failure, message, size);
        }
    }
    thread->python = PyGILState_Ensure();
    return 0;
}

/* Tells the exception that is set, with its traceback if Python can write it. */
static int dlf_raised(const char *name, char *message, size_t size)
{
    PyObject *type, *value, *trace, *lines = NULL, *joined = NULL, *empty, *whole = NULL;
    PyObject *module;
    const char *text = NULL;
    int status;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    module = PyImport_ImportModule("traceback");
    if (module != NULL)
        lines = PyObject_CallMethod(module, "format_exception", "OOO", type, value ? value : Py_None,
                                    trace ? trace : Py_None);
    empty = PyUnicode_FromString("");
    if (lines != NULL && empty != NULL)
        joined = PyUnicode_Join(empty, lines);
    PyErr_Clear();
    if (value != NULL) {
        PyObject *kind = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
        whole = PyUnicode_FromFormat("%s: %S: %S\n\n%S", name, kind ? kind : Py_None, value,
                                     joined ? joined : Py_None);
        Py_XDECREF(kind);
    }
    if (whole != NULL)
        text = PyUnicode_AsUTF8(whole);
    status = dlf_tell(DLFIELD_REFUSED, text ? text : "dlfield: an exception without a text", message, size);
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(lines);
    Py_XDECREF(joined);
    Py_XDECREF(empty);
    Py_XDECREF(whole);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

/* Finds the function in Python at its first call. */
static int dlf_open(dlf_function *function)
{
    PyObject *module;
    if (function->entry != NULL)
        return 0;
    module = PyImport_ImportModule("dlfield.fortran.calls");
    if (module == NULL)
        return -1;
    function->entry = PyObject_CallMethod(module, "open_entry", "sss", function->target, DLFIELD_FOLDER,
                                          function->signature);
    Py_DECREF(module);
    return function->entry == NULL ? -1 : 0;
}

/* Puts the arrays into words: address, extents, strides, and lower bounds where they are taken. */
static PyObject *dlf_words(dlf_function *function, const dlfield_array *const *arrays)
{
    int64_t words[DLFIELD_WORDS + 1], *next = words;
    size_t bytes;
    int i, axis, count;
    for (i = 0; i < function->fields; i++) {
        const dlfield_array *array = arrays[i];
        int rank = function->ranks[i];
        count = rank * (function->bounds[i] ? 3 : 2);
        if (array == NULL) {
            *next++ = DLFIELD_ABSENT;
            memset(next, 0, (size_t)count * sizeof *next);
            next += count;
            continue;
        }
        if (array->rank != rank || array->type != function->types[i]) {
            PyErr_Format(PyExc_TypeError,
                         "array %d: expected rank %d and type %d, got rank %d and type %d", i + 1, rank,
                         function->types[i], (int)array->rank, (int)array->type);
            return NULL;
        }
        *next++ = (int64_t)(intptr_t)array->address;
        for (axis = 0; axis < rank; axis++)
            *next++ = array->extent[axis];
        for (axis = 0; axis < rank; axis++)
            *next++ = array->stride[axis];
        for (axis = 0; axis < rank && function->bounds[i]; axis++)
            *next++ = array->lower[axis];
    }
    bytes = (size_t)(next - words) * sizeof *words;
    /* The same object for the same arrays: its hash is kept. */
    if (function->words == NULL || (size_t)PyBytes_GET_SIZE(function->words) != bytes ||
        memcmp(PyBytes_AS_STRING(function->words), words, bytes) != 0) {
        PyObject *made = PyBytes_FromStringAndSize((const char *)words, (Py_ssize_t)bytes);
        if (made == NULL)
            return NULL;
        Py_XSETREF(function->words, made);
    }
    Py_INCREF(function->words);
    return function->words;
}

/* Reads what an entry has returned: None, or a status and a text. */
static int dlf_outcome(const char *name, PyObject *outcome, char *message, size_t size)
{
    const char *text;
    int status;
    if (outcome == NULL)
        return dlf_raised(name, message, size);
    if (outcome == Py_None)
        return dlf_tell(0, "", message, size);
    if (!PyArg_ParseTuple(outcome, "is", &status, &text))
        return dlf_raised(name, message, size);
    return dlf_tell(status, text, message, size);
}

/* Calls a function, attached, and detaches. Takes the reference to `scalars`, which NULL made fail. */
static int dlf_call(dlf_function *function, const dlfield_array *const *arrays, PyObject *scalars,
                    dlf_thread *thread, char *message, size_t size)
{
    PyObject *words = NULL, *outcome = NULL;
    int status;
    if (scalars != NULL && dlf_open(function) == 0)
        words = dlf_words(function, arrays);
    if (words != NULL) {
        dlf_signals_of(+1);
        outcome = PyObject_CallFunctionObjArgs(function->entry, words, scalars, NULL);
        dlf_signals_of(-1);
    }
    status = dlf_outcome(function->name, outcome, message, size);
    Py_XDECREF(outcome);
    Py_XDECREF(words);
    Py_XDECREF(scalars);
    dlf_leave(thread);
    return status;
}

static int dlf_forget(void *address, char *message, size_t size)
{
    dlf_thread thread;
    PyObject *module, *outcome = NULL;
    int status = dlf_enter(&thread, message, size);
    if (status != 0)
        return status;
    module = PyImport_ImportModule("dlfield.fortran.calls");
    if (module != NULL)
        outcome = PyObject_CallMethod(module, "forget", "n", (Py_ssize_t)(intptr_t)address);
    status = dlf_outcome("dlfield_forget", outcome, message, size);
    Py_XDECREF(outcome);
    Py_XDECREF(module);
    dlf_leave(&thread);
    return status;
}

/* Scalars for Python. One that is left out is Ellipsis. */
static PyObject *dlf_absent(void) { Py_INCREF(Py_Ellipsis); return Py_Ellipsis; }
#define DLF_SCALAR(name, type, made) \
    static inline PyObject *dlf_##name(const type *value) { return value == NULL ? dlf_absent() : (made); }
DLF_SCALAR(float32, float, PyFloat_FromDouble(*value))
DLF_SCALAR(float64, double, PyFloat_FromDouble(*value))
DLF_SCALAR(float, double, PyFloat_FromDouble(*value))
DLF_SCALAR(int32, int32_t, PyLong_FromLong(*value))
DLF_SCALAR(int64, int64_t, PyLong_FromLongLong(*value))
DLF_SCALAR(int, int32_t, PyLong_FromLong(*value))
DLF_SCALAR(comm, int32_t, PyLong_FromLong(*value))
DLF_SCALAR(bool, bool, PyBool_FromLong(*value))
DLF_SCALAR(complex64, float, PyComplex_FromDoubles(value[0], value[1]))
DLF_SCALAR(complex128, double, PyComplex_FromDoubles(value[0], value[1]))
DLF_SCALAR(complex, double, PyComplex_FromDoubles(value[0], value[1]))
DLF_SCALAR(str, char, PyUnicode_FromString(value))
