// The still life: a round table with a patterned cloth, a glazed vase, a bird cage, books, fruit, a mug.
//
// Units are about half a metre; the table top is z = 0 and z points up. The room around it is plain on
// purpose: the eye, and the splats, belong on the table.
#include "patterns.h"
#include "world.h"

namespace {

const Vec kInk = srgb(0x35567f), kCream = srgb(0xe9dec8), kOchre = srgb(0xd9902f);
const Vec kBrick = srgb(0xb5442e), kSage = srgb(0x8aa37b), kTeal = srgb(0x4c938d);
const double kTableRadius = 1.75;
const double kCageX = -0.42, kCageY = 0.38, kCageRadius = 0.34, kCageWall = 0.52;

Material plain(unsigned digits, double gloss = 0) {
    const Vec color = srgb(digits);
    return {[color](Vec, Vec) { return color; }, gloss};
}

Vec paint_room(Vec p, Vec normal) {
    if (normal.z > 0.5)
        return odd((p.x + 0.13) / 0.62) != odd((p.y + 0.21) / 0.62) ? srgb(0xa28468) : srgb(0xbaa183);
    if (normal.z < -0.5) return kCream;
    if (std::abs(p.z + 0.15) < 0.05) return srgb(0xa98d6c);
    if (p.z < -0.15) return srgb(0xcfbf9f);
    const double along = std::abs(normal.x) > 0.5 ? p.y : p.x;
    return odd(along / 1.2) ? srgb(0x8aa9a6) : srgb(0x91afab);
}

Vec paint_cloth(double u, double v, double edge) {
    if (edge > 0.87 && odd((std::abs(u) > std::abs(v) ? v : u) / 0.1)) return kCream;
    if (edge > 0.78) return std::abs(edge - 0.82) < 0.025 ? kCream : kInk;
    // A windowpane check: pairs of thin lines over broad pale bands, both ways.
    const double pane = 0.37, across = part(u / pane), along = part(v / pane);
    const auto near = [=](double place) {
        return std::min(std::abs(across - place), std::abs(along - place)) * pane < 0.011;
    };
    if (near(0.2) || near(0.4)) return kInk;
    if (near(0.8)) return kBrick;
    const int bands = (std::abs(across - 0.3) < 0.1) + (std::abs(along - 0.3) < 0.1);
    return mix(kCream, kOchre, 0.18 * bands);
}

Vec paint_table(Vec local, Vec normal) {
    if (normal.z < 0.5) return srgb(0x6e4526);
    const double radius = (4 - local.z) * kTableRadius;  // the last piece of the profile is the top
    const double x = radius * std::cos(local.x * kPi), y = radius * std::sin(local.x * kPi);
    const Vec on_cloth = turned({x, y, 0}, -28);
    const double edge = std::max(std::abs(on_cloth.x), std::abs(on_cloth.y));
    if (edge < 0.91) return paint_cloth(on_cloth.x, on_cloth.y, edge);
    return planks(x, y, 0.27, 1.7, srgb(0x8a5a34), srgb(0xb98550));
}

Vec paint_vase(Vec local, Vec) {
    const double turn = local.x, z = local.y;
    if (std::abs(z - 0.10) < 0.012 || std::abs(z - 0.36) < 0.008) return kCream;
    const double across = (part(turn * 6) - 0.5) * 3, up = (z - 0.24) / 0.085;
    if (across * across + up * up < 1) return kOchre;
    const double zigzag = 0.40 + 0.1 * std::abs(part(turn * 6) - 0.5);
    return std::abs(z - zigzag) < 0.016 ? kCream : kTeal;
}

Vec paint_mug(Vec local, Vec) {
    const double z = local.y;
    if (z < 0.05 || z > 0.21 || !odd(z / 0.04)) return kCream;
    return odd(local.x * 4) ? kBrick : kInk;
}

Vec paint_apple(Vec local, Vec) {
    const double turn = std::atan2(local.y, local.x) / kPi;
    return part(turn * 6) < 0.28 + 0.3 * local.z ? srgb(0xcc7a35) : srgb(0xa8201f);
}

Material book(Vec cover, const std::string& title, Vec half, uint64_t salt) {
    const auto paint = [=](Vec p, Vec) {
        if (std::abs(p.z) > 0.999 * half.z) {
            const double frame = std::max(std::abs(p.x) - half.x, std::abs(p.y) - half.y);
            if (std::abs(frame + 0.032) < 0.008) return kOchre;
            const bool here = p.y < 0.02 && p.y > 0.06 - half.y && std::abs(p.x) < half.x - 0.07;
            const bool ink =
                on_letters(p.x, p.y - 0.10, title, 0.085) || (here && on_print(p.x, p.y, 0.052, salt));
            return ink ? kCream : cover;
        }
        if (p.x < -0.999 * half.x) return on_letters(-p.y, p.z, title, half.z) ? kCream : cover;
        if (std::abs(p.z) > 0.78 * half.z) return cover;
        return odd(p.z / 0.016) ? kCream : srgb(0xb9ab90);
    };
    return {paint, 0.08};
}

void add_wires(Group& group, const std::vector<Vec>& points, double radius, const Material& material) {
    for (size_t i = 0; i + 1 < points.size(); ++i)
        group.add(std::make_unique<Wire>(points[i], points[i + 1], radius), material);
}

// Straight ribs, a dome of arcs, three hoops, a ring to hang it by.
Group cage() {
    Group group;
    const Material brass{[](Vec, Vec) { return srgb(0xc99a3f); }, 0.5, 60};
    const int ribs = 14, arcs = 8;
    for (int rib = 0; rib < ribs; ++rib) {
        const double angle = 2 * kPi * rib / ribs;
        const Vec out{std::cos(angle), std::sin(angle), 0};
        std::vector<Vec> points{Vec{kCageX, kCageY, 0.03} + kCageRadius * out};
        for (int k = 0; k <= arcs; ++k) {
            const double rise = kPi / 2 * k / arcs;
            points.push_back(Vec{kCageX, kCageY, kCageWall + kCageRadius * std::sin(rise)} +
                             kCageRadius * std::cos(rise) * out);
        }
        add_wires(group, points, 0.0095, brass);
    }
    std::vector<Vec> ring;
    for (int k = 0; k <= 12; ++k) {
        const double a = 2 * kPi * k / 12;
        ring.push_back(
            {kCageX + 0.06 * std::cos(a), kCageY, kCageWall + kCageRadius + 0.06 + 0.06 * std::sin(a)});
    }
    add_wires(group, ring, 0.0095, brass);
    const Vec middle{kCageX, kCageY, 0};
    using Profile = std::vector<std::pair<double, double>>;
    for (const double z : {0.20, 0.36, kCageWall}) {
        const Profile hoop{{kCageRadius + 0.01, z - 0.013}, {kCageRadius + 0.01, z + 0.013}};
        group.add(std::make_unique<Lathe>(middle, hoop, false), brass);
    }
    const Profile base{{0, 0}, {0.38, 0}, {0.38, 0.05}, {0, 0.05}};
    group.add(std::make_unique<Lathe>(middle, base, false), plain(0x7a4a2a));
    group.add(std::make_unique<Wire>(middle + Vec{-0.2, -0.2, 0.2}, middle + Vec{0.2, 0.2, 0.2}, 0.016),
              plain(0x8a6a44));
    return group;
}

Group bird() {
    Group group;
    const Material orange = plain(0xe2682a), wing = plain(0x8d2f1c), eye = plain(0x101010);
    const auto add = [&](Vec offset, Vec radii, double tilt, const Material& material) {
        group.add(std::make_unique<Ellipsoid>(Vec{kCageX, kCageY, 0} + offset, radii, 45, tilt), material);
    };
    add({0, 0, 0.30}, {0.13, 0.085, 0.09}, -18, orange);
    add({0.085, 0.085, 0.385}, {0.06, 0.06, 0.06}, 0, orange);
    add({0.145, 0.145, 0.38}, {0.04, 0.014, 0.014}, 0, plain(0xefc04a));
    add({-0.13, -0.13, 0.26}, {0.12, 0.03, 0.02}, -20, wing);
    add({-0.075, 0.035, 0.305}, {0.1, 0.03, 0.055}, -18, wing);
    add({0.035, -0.075, 0.305}, {0.1, 0.03, 0.055}, -18, wing);
    add({0.09, 0.135, 0.40}, {0.012, 0.012, 0.012}, 0, eye);
    add({0.135, 0.09, 0.40}, {0.012, 0.012, 0.012}, 0, eye);
    return group;
}

Group vase_and_ball() {
    Group group;
    const std::vector<std::pair<double, double>> profile{
        {0, 0},       {0.15, 0},     {0.17, 0.02},  {0.235, 0.12}, {0.27, 0.24}, {0.255, 0.34},
        {0.20, 0.44}, {0.135, 0.53}, {0.105, 0.61}, {0.105, 0.68}, {0.14, 0.75}, {0.165, 0.77}};
    const Material glaze{paint_vase, 0.35, 40, 0.04};
    const Material gold{[](Vec, Vec) { return srgb(0xf3d28c); }, 1.0, 200, 0.85, true};
    group.add(std::make_unique<Lathe>(Vec{0.46, 0.30, 0}, profile), glaze);
    group.add(std::make_unique<Ellipsoid>(Vec{0.16, -0.02, 0.11}, Vec{0.11, 0.11, 0.11}), gold);
    return group;
}

Group books() {
    Group group;
    const Vec low{0.36, 0.27, 0.05}, high{0.31, 0.23, 0.045}, cube{0.13, 0.13, 0.13};
    group.add(std::make_unique<Box>(Vec{0.42, -0.50, 0.05}, low, 14), book(kBrick, "GAUSS", low, 1));
    group.add(std::make_unique<Box>(Vec{0.40, -0.49, 0.145}, high, -9), book(kSage, "SPLATS", high, 2));
    group.add(std::make_unique<Box>(Vec{0.30, -0.45, 0.32}, cube, 33),
              {[](Vec p, Vec) { return stickers(p, 0.13); }, 0.15});
    return group;
}

Group fruit() {
    Group group;
    const Material lemon = plain(0xe8c22e, 0.15), stalk = plain(0x4a3320);
    const std::vector<std::pair<double, double>> pear{{0, 0},        {0.05, 0.004}, {0.10, 0.04},
                                                      {0.122, 0.10}, {0.105, 0.17}, {0.07, 0.23},
                                                      {0.052, 0.28}, {0.03, 0.31},  {0, 0.318}};
    group.add(std::make_unique<Ellipsoid>(Vec{-0.30, -0.40, 0.105}, Vec{0.125, 0.125, 0.105}),
              {paint_apple, 0.3});
    group.add(std::make_unique<Wire>(Vec{-0.30, -0.40, 0.19}, Vec{-0.28, -0.39, 0.27}, 0.009), stalk);
    group.add(std::make_unique<Ellipsoid>(Vec{-0.10, -0.58, 0.085}, Vec{0.125, 0.085, 0.085}, 30), lemon);
    group.add(std::make_unique<Ellipsoid>(Vec{-0.50, -0.18, 0.08}, Vec{0.12, 0.08, 0.08}, 110), lemon);
    group.add(std::make_unique<Lathe>(Vec{-0.57, -0.47, 0}, pear), plain(0x9fae3c, 0.12));
    group.add(std::make_unique<Wire>(Vec{-0.57, -0.47, 0.31}, Vec{-0.585, -0.46, 0.38}, 0.009), stalk);
    return group;
}

Group mug_and_pencils() {
    Group group;
    const double x = 0.02, y = 0.62;
    const std::vector<std::pair<double, double>> body{{0, 0},       {0.12, 0},     {0.13, 0.02},
                                                      {0.13, 0.26}, {0.115, 0.26}, {0.115, 0.03}};
    group.add(std::make_unique<Lathe>(Vec{x, y, 0}, body, false), {paint_mug, 0.4, 90});
    std::vector<Vec> handle;
    for (int k = 0; k <= 6; ++k) {
        const double a = -1.2 + 0.4 * k;
        handle.push_back({x - 0.11 - 0.09 * std::cos(a), y, 0.135 + 0.09 * std::sin(a)});
    }
    add_wires(group, handle, 0.018, plain(0xf2e8d5, 0.3));
    const struct {
        unsigned color;
        double lean, angle;
    } pencils[] = {{0xe3b23c, 0.09, 0.4}, {0x3f8f6a, 0.10, 2.6}, {0xc8402f, 0.08, 4.6}};
    for (const auto& pencil : pencils) {
        const Vec out{std::cos(pencil.angle), std::sin(pencil.angle), 0};
        const Vec foot = Vec{x, y, 0.04} - 0.05 * out,
                  tip = Vec{x, y, 0.50 + pencil.lean} + pencil.lean * out;
        const Vec neck = mix(foot, tip, 0.88);
        group.add(std::make_unique<Wire>(foot, neck, 0.016), plain(pencil.color, 0.2));
        group.add(std::make_unique<Wire>(neck, tip, 0.009), plain(0xead2a4));
    }
    return group;
}

}  // namespace

World still_life() {
    using Profile = std::vector<std::pair<double, double>>;
    World world;
    Group room, table, foot;
    room.add(std::make_unique<Room>(Vec{-3.6, -3.6, -0.9}, Vec{3.6, 3.6, 3.4}), {paint_room});
    const Profile board{{0.12, -0.9}, {0.12, -0.06}, {kTableRadius, -0.06}, {kTableRadius, 0}, {0, 0}};
    table.add(std::make_unique<Lathe>(Vec{}, board, false), {paint_table, 0.03});
    foot.add(std::make_unique<Lathe>(Vec{}, Profile{{0.6, -0.9}, {0.55, -0.82}, {0.1, -0.76}}, false),
             plain(0x6e4526));
    world.groups.push_back(std::move(room));
    world.groups.push_back(std::move(table));
    world.groups.push_back(std::move(foot));
    world.groups.push_back(cage());
    world.groups.push_back(bird());
    world.groups.push_back(vase_and_ball());
    world.groups.push_back(books());
    world.groups.push_back(fruit());
    world.groups.push_back(mug_and_pencils());
    world.balls = {{{kCageX, kCageY, 0.05}, 0.22}, {{0.46, 0.30, 0.22}, 0.25},
                   {{0.16, -0.02, 0.10}, 0.10},    {{0.42, -0.50, 0.05}, 0.24},
                   {{-0.30, -0.40, 0.10}, 0.115},  {{-0.10, -0.58, 0.08}, 0.09},
                   {{-0.50, -0.18, 0.08}, 0.09},   {{-0.57, -0.47, 0.10}, 0.11},
                   {{0.02, 0.62, 0.12}, 0.13},     {{0, 0, -0.35}, 1.0}};
    world.lamp_center = {1.6, -2.2, 3.1};
    world.lamp_radius = 0.45;
    world.lamp_color = {1.02, 0.94, 0.80};
    world.sky = {0.50, 0.53, 0.57};
    world.ground = {0.27, 0.24, 0.20};
    return world;
}
