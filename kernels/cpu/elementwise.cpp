#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/gradient.h"
#include "kernels/cpu/parallel.h"
#include "kernels/formula/checksum.h"
#include "kernels/twins.h"

namespace ddp::cpu {
namespace {

/// Elements that one thread takes at a time.
constexpr std::int64_t kPiece = 32 * kTile;

/// Elements [begin, begin + n) of item `item` of a list.
struct Piece {
  std::size_t item;
  std::int64_t begin;
  std::int64_t n;
};

std::vector<Piece> cut_items(std::size_t items, auto numel_of) {
  std::vector<Piece> pieces;
  for (std::size_t item = 0; item < items; ++item) {
    const std::int64_t numel = numel_of(item);
    for (std::int64_t begin = 0; begin < numel; begin += kPiece)
      pieces.push_back({item, begin, std::min(kPiece, numel - begin)});
  }
  return pieces;
}

/// Calls body(piece) for all of them, on several threads if that pays.
void for_pieces(const std::vector<Piece>& pieces, const auto& body) {
  std::int64_t elements = 0;
  for (const Piece& piece : pieces) elements += piece.n;
  parallel_for(
      static_cast<std::int64_t>(pieces.size()), elements * 4,
      [&](std::int64_t i) { body(pieces[static_cast<std::size_t>(i)]); });
}

/// Calls body(begin, n) for each tile of a piece.
void for_tiles(const Piece& piece, const auto& body) {
  for (std::int64_t i = 0; i < piece.n; i += kTile)
    body(piece.begin + i, std::min(kTile, piece.n - i));
}

std::vector<Piece> cut_tensors(std::span<const TensorView> tensors) {
  return cut_items(tensors.size(),
                   [&](std::size_t i) { return tensors[i].numel; });
}

std::vector<Piece> cut_pairs(std::span<const TensorPair> pairs) {
  return cut_items(pairs.size(),
                   [&](std::size_t i) { return pairs[i].source.numel; });
}

void* at(const TensorView& tensor, std::int64_t index) {
  return element(tensor.data, tensor.dtype, index);
}

template <typename S>
void cast_piece(const TensorPair& pair, const Piece& piece) {
  const Tiles<S>& t = tiles<S>();
  S buffer[kTile];
  const bool from_s = pair.source.dtype == dtype_of<S>();
  const bool to_s = pair.destination.dtype == dtype_of<S>();
  for_tiles(piece, [&](std::int64_t begin, std::int64_t n) {
    const void* from = at(pair.source, begin);
    void* to = at(pair.destination, begin);
    S* wide = to_s ? static_cast<S*>(to) : buffer;
    if (from_s) {
      t.narrow[index_of(pair.destination.dtype)](
          to, static_cast<const S*>(from), n);
      return;
    }
    t.widen[index_of(pair.source.dtype)](wide, from, n);
    if (!to_s) t.narrow[index_of(pair.destination.dtype)](to, buffer, n);
  });
}

template <typename S>
void accumulate_piece(const TensorPair& pair, const Piece& piece) {
  const Tiles<S>& t = tiles<S>();
  const int to_index = index_of(pair.destination.dtype);
  const int from_index = index_of(pair.source.dtype);
  S buffer[kTile];
  for_tiles(piece, [&](std::int64_t begin, std::int64_t n) {
    void* to = at(pair.destination, begin);
    const void* from = at(pair.source, begin);
    if (pair.destination.dtype == dtype_of<S>())
      return t.add[from_index](static_cast<S*>(to), from, n);
    t.widen[to_index](buffer, to, n);
    t.add[from_index](buffer, from, n);
    t.narrow[to_index](to, buffer, n);
  });
}

/// Returns whether all results are finite, if `check`; else true.
template <typename S>
bool scale_piece(const TensorView& tensor, const Piece& piece, S factor,
                 bool check) {
  const Tiles<S>& t = tiles<S>();
  const int index = index_of(tensor.dtype);
  S buffer[kTile];
  bool finite = true;
  for_tiles(piece, [&](std::int64_t begin, std::int64_t n) {
    void* data = at(tensor, begin);
    const bool in_place = tensor.dtype == dtype_of<S>();
    S* x = in_place ? static_cast<S*>(data) : buffer;
    if (!in_place) t.widen[index](buffer, data, n);
    t.scale(x, factor, n);
    if (!in_place) t.narrow[index](data, buffer, n);
    if (!check) return;
    if (!in_place) t.widen[index](buffer, data, n);  // rounding may overflow
    finite = finite && t.all_finite(x, n);
  });
  return finite;
}

bool is_wide(DType a, DType b) {
  return a == DType::kFloat64 || b == DType::kFloat64;
}

template <typename S>
void sum_piece(const TensorView& destination, const PeerList& sources,
               DType dtype, const Piece& piece) {
  const Tiles<S>& t = tiles<S>();
  S buffer[kTile];
  for_tiles(piece, [&](std::int64_t begin, std::int64_t n) {
    const S* total = summed<S>(sources, dtype, begin, n, buffer);
    void* to = at(destination, begin);
    if (to != total) t.narrow[index_of(destination.dtype)](to, total, n);
  });
}

}  // namespace

void fill_zero(std::span<const TensorView> tensors) {
  for_pieces(cut_tensors(tensors), [&](const Piece& piece) {
    const TensorView& tensor = tensors[piece.item];
    std::memset(at(tensor, piece.begin), 0,
                static_cast<std::size_t>(piece.n) * size_of(tensor.dtype));
  });
}

void cast(std::span<const TensorPair> pairs) {
  for_pieces(cut_pairs(pairs), [&](const Piece& piece) {
    const TensorPair& pair = pairs[piece.item];
    const DType from = pair.source.dtype;
    const DType to = pair.destination.dtype;
    if (from == to) {
      std::memmove(at(pair.destination, piece.begin),
                   at(pair.source, piece.begin),
                   static_cast<std::size_t>(piece.n) * size_of(to));
    } else if (is_wide(from, to)) {
      cast_piece<double>(pair, piece);
    } else {
      cast_piece<float>(pair, piece);
    }
  });
}

void accumulate(std::span<const TensorPair> pairs) {
  for_pieces(cut_pairs(pairs), [&](const Piece& piece) {
    const TensorPair& pair = pairs[piece.item];
    if (is_wide(pair.source.dtype, pair.destination.dtype)) {
      accumulate_piece<double>(pair, piece);
    } else {
      accumulate_piece<float>(pair, piece);
    }
  });
}

void scale(std::span<const TensorView> tensors, double factor) {
  for_pieces(cut_tensors(tensors), [&](const Piece& piece) {
    const TensorView& tensor = tensors[piece.item];
    if (tensor.dtype == DType::kFloat64) {
      scale_piece<double>(tensor, piece, factor, false);
    } else {
      scale_piece<float>(tensor, piece, static_cast<float>(factor), false);
    }
  });
}

void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite) {
  std::atomic<bool> finite = true;
  for_pieces(cut_tensors(tensors), [&](const Piece& piece) {
    const TensorView& tensor = tensors[piece.item];
    const bool good = tensor.dtype == DType::kFloat64
                          ? scale_piece<double>(tensor, piece, *factor, true)
                          : scale_piece<float>(tensor, piece, *factor, true);
    if (!good) finite.store(false, std::memory_order_relaxed);
  });
  if (!finite.load()) *non_finite = 1;
}

void sum(TensorView destination, const PeerList& sources, DType source_dtype) {
  const auto pieces =
      cut_items(1, [&](std::size_t) { return destination.numel; });
  for_pieces(pieces, [&](const Piece& piece) {
    if (is_wide(destination.dtype, source_dtype)) {
      sum_piece<double>(destination, sources, source_dtype, piece);
    } else {
      sum_piece<float>(destination, sources, source_dtype, piece);
    }
  });
}

void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result) {
  const std::size_t bytes = tensor.bytes();
  const char* data = static_cast<const char*>(tensor.data);
  const auto words = static_cast<std::int64_t>(bytes / 8);
  std::atomic<std::uint64_t> total = formula::checksum_start(bytes, seed);
  for_pieces(
      cut_items(1, [&](std::size_t) { return words; }),
      [&](const Piece& piece) {
        total.fetch_add(
            tile_set().checksum(data + piece.begin * 8, piece.n,
                                static_cast<std::uint64_t>(piece.begin), seed),
            std::memory_order_relaxed);
      });
  if (bytes % 8 != 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + words * 8, bytes % 8);
    total +=
        formula::checksum_term(word, static_cast<std::uint64_t>(words), seed);
  }
  *result = total.load();
}

}  // namespace ddp::cpu
