#include "python.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "library.h"

namespace rocpd::python {
namespace {

template <typename Function>
bool find(Function& function, const char* name) {
    return find_function(RTLD_DEFAULT, function, name);
}

// The number of a Python 3.
long minor_version(const Interface& i) {
    const char* point = std::strchr(i.version(), '.');
    return point != nullptr ? std::strtol(point + 1, nullptr, 10) : 0;
}

// Ways to interrupt the running thread, of which each Python has another one.
void look_up_interruptions(Interface& i) {
    const long minor = minor_version(i);
    if (minor < 12) {
        if (!find(i.switch_interval, "_PyEval_GetSwitchInterval") ||
            !find(i.set_switch_interval, "_PyEval_SetSwitchInterval"))
            i.set_switch_interval = nullptr;
        return;
    }
    // Newer ones than are known may have another function of this name.
    if (minor > 13 || !find(i.main_interpreter, "PyInterpreterState_Main") ||
        !find(i.add_call_for_any, "_PyEval_AddPendingCall"))
        i.add_call_for_any = nullptr;
    if (minor > 12) find(i.add_call, "Py_AddPendingCall");
}

// Whether all that is needed is there.
bool look_up(Interface& i) {
    find(i.instruction, "PyFrame_GetLasti");
    if (!find(i.is_finalizing, "Py_IsFinalizing")) find(i.is_finalizing, "_Py_IsFinalizing");
    find(i.gc_disable, "PyGC_Disable");
    find(i.gc_enable, "PyGC_Enable");
    return find(i.is_initialized, "Py_IsInitialized") && find(i.ensure, "PyGILState_Ensure") &&
           find(i.save, "PyEval_SaveThread") && find(i.restore, "PyEval_RestoreThread") &&
           find(i.system, "PySys_GetObject") && find(i.modules, "PyImport_GetModuleDict") &&
           find(i.call, "PyObject_CallObject") && find(i.attribute, "PyObject_GetAttrString") &&
           find(i.item, "PyDict_GetItem") && find(i.item_by_name, "PyDict_GetItemString") &&
           find(i.next, "PyDict_Next") && find(i.list_size, "PyList_Size") && find(i.list_item, "PyList_GetItem") &&
           find(i.utf8, "PyUnicode_AsUTF8AndSize") && find(i.as_unsigned, "PyLong_AsUnsignedLong") &&
           find(i.is_true, "PyObject_IsTrue") && find(i.code, "PyFrame_GetCode") && find(i.back, "PyFrame_GetBack") &&
           find(i.line, "PyFrame_GetLineNumber") && find(i.release, "Py_DecRef") &&
           find(i.clear_error, "PyErr_Clear") && find(i.function, "PyCFunction_NewEx") &&
           find(i.tuple, "PyTuple_New") && find(i.dictionary, "PyDict_New") &&
           find(i.set_item, "PyDict_SetItemString") && find(i.call_with_names, "PyObject_Call") &&
           find(i.import, "PyImport_ImportModule") && find(i.none, "Py_BuildValue") && find(i.version, "Py_GetVersion");
}

}  // namespace

const Interface* interface() {
    static Interface functions{};
    static const bool complete = look_up(functions) && (look_up_interruptions(functions), true);
    return complete ? &functions : nullptr;
}

std::string text_of(Object* object) {
    std::ptrdiff_t size = 0;
    const char* text = object != nullptr ? interface()->utf8(object, &size) : nullptr;
    if (text != nullptr) return {text, static_cast<std::size_t>(size)};
    interface()->clear_error();
    return "?";
}

}  // namespace rocpd::python
