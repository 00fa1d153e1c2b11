// The part of Python's C interface that is used: looked up in the process, as the recorder links with no Python.
#pragma once

#include <cstddef>
#include <string>

namespace rocpd::python {

struct Object;       // PyObject
struct ThreadState;  // PyThreadState
struct Interpreter;  // PyInterpreterState

// The functions, all of which Python 3.9 and newer have, but for those that may be null.
struct Interface {
    int (*is_initialized)();
    int (*is_finalizing)();  // may be null
    int (*ensure)();
    ThreadState* (*save)();
    void (*restore)(ThreadState*);
    int (*gc_disable)();  // may be null: Python 3.9
    int (*gc_enable)();
    Object* (*system)(const char* name);  // borrowed
    Object* (*modules)();                 // borrowed
    Object* (*call)(Object* function, Object* arguments);
    Object* (*attribute)(Object*, const char* name);
    Object* (*item)(Object* dictionary, Object* key);             // borrowed
    Object* (*item_by_name)(Object* dictionary, const char* key);  // borrowed
    int (*next)(Object* dictionary, std::ptrdiff_t* position, Object** key, Object** value);
    std::ptrdiff_t (*list_size)(Object*);
    Object* (*list_item)(Object*, std::ptrdiff_t);  // borrowed
    const char* (*utf8)(Object*, std::ptrdiff_t* size);
    unsigned long (*as_unsigned)(Object*);
    int (*is_true)(Object*);
    Object* (*code)(Object* frame);
    Object* (*back)(Object* frame);
    int (*line)(Object* frame);
    int (*instruction)(Object* frame);  // may be null: before Python 3.11
    void (*release)(Object*);  // takes null
    void (*clear_error)();
    Object* (*function)(const void* definition, Object* self, Object* module);
    Object* (*tuple)(std::ptrdiff_t size);
    Object* (*dictionary)();
    int (*set_item)(Object* dictionary, const char* key, Object* value);
    Object* (*call_with_names)(Object* function, Object* arguments, Object* names);
    Object* (*import)(const char* name);
    Object* (*none)(const char* format, ...);  // Py_BuildValue: of "" it makes None
    const char* (*version)();
    // Of those below, all may be null. They are called without the interpreter's lock.
    // Leaves a call for the main thread, and wakes it: Python 3.13 and newer. Older ones let it wait for something
    // else.
    int (*add_call)(int (*function)(void*), void* argument);
    // Leaves it for whatever thread runs, and wakes this: Python 3.12 and 3.13. Of no public interface, as those below.
    int (*add_call_for_any)(Interpreter*, int (*function)(void*), void* argument, int flags);
    Interpreter* (*main_interpreter)();
    unsigned long (*switch_interval)();  // [us]; until Python 3.11, a static variable
    void (*set_switch_interval)(unsigned long);
};

// Returns the interface of the Python in this process, nullptr where there is none.
const Interface* interface();

// A reference that is given back at the end of its block. The interpreter's lock must be held.
class Reference {
public:
    explicit Reference(Object* object) : object_(object) {}
    ~Reference() {
        if (object_ != nullptr) interface()->release(object_);
    }
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;

    explicit operator bool() const { return object_ != nullptr; }
    Object* get() const { return object_; }
    // Takes over another reference.
    void reset(Object* object) {
        if (object_ != nullptr) interface()->release(object_);
        object_ = object;
    }

private:
    Object* object_;
};

// Returns a str as UTF-8, "?" for anything else.
std::string text_of(Object* object);

}  // namespace rocpd::python
