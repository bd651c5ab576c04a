// Event files against published check values and a reader of their own framing; plots as text.
#include "io/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "io/scratch.h"
#include "io/svg_plot.h"
#include "io/wire.h"

namespace crema {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);              // the catalogue's check value
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);    // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);  // the same
}

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Undoes TensorFlow's mask.
uint32_t unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

TEST(TfRecord, FramesItsContent) {
  const std::string record = tf_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(unmasked(number_at(record, 8)), crc32c(record.substr(0, 8)));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(unmasked(number_at(record, 15)), crc32c("abc"));
}

TEST(EventFile, HoldsItsVersionThenScalars) {
  const TestFolder folder;
  EventFile file(folder / "logs/run");
  file.add(300, {{"test/accuracy", 0.5}});
  EXPECT_NE(file.path().find("logs/run/events.out.tfevents."), std::string::npos);
  const std::string bytes = read_file(file.path());
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    const uint32_t length = number_at(bytes, at);
    events.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  ASSERT_EQ(events.size(), 2u);
  WireReader first(events[0]);
  EXPECT_EQ(first.next()->number, 1);
  const auto version = first.next();
  EXPECT_EQ(version->number, 3);
  EXPECT_EQ(version->bytes, "brain.Event:2");
  WireReader second(events[1]);
  EXPECT_EQ(second.next()->type, WireType::fixed64);  // wall_time
  EXPECT_EQ(second.next()->value, 300u);
  const auto summary = second.next();
  EXPECT_EQ(summary->number, 5);
  const auto value = WireReader(summary->bytes).next();
  WireReader scalar(value->bytes);
  EXPECT_EQ(scalar.next()->bytes, "test/accuracy");
  const auto simple = scalar.next();
  EXPECT_EQ(simple->number, 2);
  EXPECT_EQ(number_at(std::string(simple->bytes), 0), 0x3f000000u);
}

TEST(EventFile, CannotBeWhereAFileIs) {
  const TestFolder folder;
  write_file(folder / "f", "");
  EXPECT_NE(error_of([&] { EventFile file(folder / "f/logs"); }).find((folder / "f/logs") + ": "),
            std::string::npos);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SvgPlot, DrawsEachLineWithAGapWhereAValueIsMissing) {
  const PlotPanel loss{
      .title = "loss <1>",
      .lines = {{.name = "a", .points = {{0, 1}, {10, NAN}, {20, 3}, {30, 2}}},
                {.name = "b", .points = {{0, 2}}, .colour = 1, .is_dashed = true}}};
  const std::string svg = draw_svg("t & u", "iteration", {loss, {.title = "empty", .lines = {}}});
  EXPECT_EQ(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_NE(svg.find("t &amp; u"), std::string::npos);
  EXPECT_NE(svg.find("loss &lt;1&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("empty"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // x: 0 to 30 over 590 pixels from 70; y: 1 to 3 over 260 pixels from 46, downwards
  EXPECT_NE(svg.find("<path d=\"M70 306M463.33 46L660 176\" fill=\"none\" stroke=\"#1f77b4\""),
            std::string::npos)
      << svg;
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2u);  // the line and its legend
  EXPECT_EQ(count_of(svg, "<circle"), 1u);
}

TEST(SvgPlot, TakesLogarithmsOnlyOfWhatHasThem) {
  PlotPanel panel{.title = "p",
                  .lines = {{.name = "a", .points = {{0, 0.01}, {1, 1}, {2, 100}}}},
                  .is_logarithmic = true};
  EXPECT_NE(draw_svg("t", "x", {panel}).find("M70 306L365 176L660 46"), std::string::npos);
  panel.lines[0].points[0].second = 0;
  EXPECT_NE(draw_svg("t", "x", {panel}).find("M70 306L365 303.4L660 46"), std::string::npos);
}

TEST(SvgPlot, OfNothingSaysSo) {
  EXPECT_NE(draw_svg("t", "x", {}).find("nothing to show yet"), std::string::npos);
}

}  // namespace
}  // namespace crema
