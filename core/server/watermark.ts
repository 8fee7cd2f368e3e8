/** How many there were at once, at most, in the second before this one. Source: kubernetes v1.36 apiserver/pkg/server/filters/maxinflight.go requestWatermark */
export class Watermark {
  #now = 0;
  #second = 0;
  #most = 0; // in #second
  #before = 0; // in the second before that

  add(by: 1 | -1, uptimeMs: number): void {
    this.#turn(uptimeMs);
    this.#now += by;
    this.#most = Math.max(this.#most, this.#now);
  }

  read(uptimeMs: number): number {
    this.#turn(uptimeMs);
    return this.#before;
  }

  #turn(uptimeMs: number): void {
    const second = Math.floor(uptimeMs / 1000);
    if (second === this.#second) return;
    this.#before = second === this.#second + 1 ? this.#most : this.#now;
    this.#most = this.#now;
    this.#second = second;
  }
}
