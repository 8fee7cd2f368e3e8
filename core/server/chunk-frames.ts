/**
 * Chunks of HTTP/1.1 bodies with their length before them, made once for all watchers that are sent the same bytes one after another:
 * five hundred watchers then cost five hundred writes, and no copy each.
 */
interface Framed { readonly bytes: Uint8Array; readonly frame: Buffer }

/** Watchers of different things are served in between. */
const FRAMES_MAX = 8;

export class ChunkFrames {
  readonly #latest: Framed[] = [];

  of(bytes: Uint8Array): Buffer {
    const known = this.#latest.find((one) => one.bytes === bytes);
    if (known) return known.frame;
    const head = `${bytes.length.toString(16)}\r\n`;
    const frame = Buffer.allocUnsafeSlow(head.length + bytes.length + 2);
    frame.write(head, "latin1");
    frame.set(bytes, head.length);
    frame.write("\r\n", head.length + bytes.length, "latin1");
    this.#latest.unshift({ bytes, frame });
    if (this.#latest.length > FRAMES_MAX) this.#latest.pop();
    return frame;
  }
}
