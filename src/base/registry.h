// Name -> value tables that static objects fill before main. One instance of each lives in the base
// shared library, so that plug-in libraries see the same table.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace crema {

template <class Value>
class Registry {
 public:
  /// The later registration of a name replaces the earlier one.
  void add(const std::string& name, Value value) { table_[name] = std::move(value); }
  /// nullptr when the name is unknown.
  const Value* find(const std::string& name) const {
    const auto it = table_.find(name);
    return it == table_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : table_) out.push_back(name);
    return out;
  }

 private:
  std::map<std::string, Value> table_;
};

}  // namespace crema
