// The C functions of rocpd/recorder.h that register what events refer to. Their arguments go into columns with
// constraints: a value that would break one is left out, as it must not end the recording.
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <string>

#include "registrations.h"
#include "json.h"
#include "lifecycle.h"
#include "rocpd/recorder.h"
#include "texts.h"

using namespace rocpd;

namespace {

Cell cell(const char* text) { return text != nullptr ? Cell(readable(text)) : Cell(nullptr); }
Cell cell(std::uint64_t number) { return static_cast<std::int64_t>(number); }
Cell cell(std::uint32_t number) { return std::int64_t{number}; }
Cell needed(const char* text) { return readable(text != nullptr ? text : ""); }
Cell json_cell(const char* text) { return std::string(text != nullptr ? text : "{}"); }
Cell id_or_null(std::int64_t id) { return id < 0 ? Cell(nullptr) : Cell(id); }

// Returns the text if the column allows it, else NULL.
Cell one_of(const char* text, std::initializer_list<const char*> allowed) {
    for (const char* word : allowed)
        if (text != nullptr && std::strcmp(text, word) == 0) return std::string(word);
    return nullptr;
}

// Tags by which readers identify the file.
bool is_reserved(const std::string& tag) {
    return tag == "guid" || tag == "uuid" || tag.rfind("schema_version", 0) == 0 || tag.rfind("recorder", 0) == 0;
}

}  // namespace

extern "C" {

rocpd_text_t rocpd_text(const char* text, size_t size) {
    return texts().number(readable(text != nullptr ? std::string_view(text, size) : std::string_view()));
}

void rocpd_register_agent(const rocpd_agent_t* a) {
    registrations().add(
        kAgent, {a->id, one_of(a->type, {"CPU", "GPU"}), a->absolute_index, a->logical_index, a->type_index,
                 cell(a->uuid), cell(a->name), cell(a->model_name), cell(a->vendor_name), cell(a->product_name),
                 cell(a->user_name), json_cell(a->extdata)});
}

void rocpd_register_queue(int64_t id, const char* name) { registrations().add(kQueue, {id, cell(name)}); }

void rocpd_register_stream(int64_t id, const char* name) { registrations().add(kStream, {id, cell(name)}); }

void rocpd_register_code_object(const rocpd_code_object_t* o) {
    registrations().add(
        kCodeObject, {o->id, id_or_null(o->agent_id), cell(o->uri), cell(o->load_base), cell(o->load_size),
                      cell(o->load_delta), one_of(o->storage_type, {"FILE", "MEMORY"}), json_cell(o->extdata)});
}

void rocpd_register_kernel_symbol(const rocpd_kernel_symbol_t* s) {
    registrations().add(
        kSymbol, {s->id, s->code_object_id, cell(s->kernel_name), cell(s->display_name), cell(s->kernel_object),
                  cell(s->kernarg_segment_size), cell(s->kernarg_segment_alignment), cell(s->group_segment_size),
                  cell(s->private_segment_size), cell(s->sgpr_count), cell(s->arch_vgpr_count),
                  cell(s->accum_vgpr_count), json_cell(s->extdata)});
}

void rocpd_register_counter(const rocpd_counter_t* c) {
    registrations().add(
        kPmc, {c->id, id_or_null(c->agent_id), one_of(c->target_arch, {"CPU", "GPU"}), c->id, std::int64_t{0},
               needed(c->name), needed(c->name), cell(c->description), cell(c->component), needed(c->units),
               one_of(c->value_type, {"ABS", "ACCUM", "RELATIVE"}), cell(c->block), cell(c->expression),
               std::int64_t{c->is_constant}, std::int64_t{c->is_derived}, json_cell(c->extdata)});
}

int64_t rocpd_register_track(const char* name) {
    const std::int64_t id = g_next_track.fetch_add(1);
    registrations().add(kTrack, {id, std::int64_t{texts().number(readable(name != nullptr ? name : ""))}});
    return id;
}

void rocpd_note(const char* tag, const char* value) {
    const std::string name = readable(tag != nullptr ? tag : "");
    if (!name.empty() && !is_reserved(name)) registrations().add(kMetadata, {name, needed(value)});
}

}  // extern "C"
