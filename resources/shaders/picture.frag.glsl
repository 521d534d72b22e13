// The picture as it is, in the screen's own (gamma) space; alpha counts for overlays only.
uniform sampler2D picture;
uniform float uses_alpha;
varying vec2 place;

void main() {
    vec4 found = texture2D(picture, place);
    gl_FragColor = vec4(found.rgb, mix(1.0, found.a, uses_alpha));
}
