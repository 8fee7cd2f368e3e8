export interface RequestSignal {
  readonly signal: AbortSignal;
  /** Its answer has no end of its own. */
  lasts(): void;
  end(): void;
}

/**
 * The signals of all requests under way: each aborts when its request is over, and when the server stops those of requests whose answers have no end of their own: what others
 * began is brought to its end. One controller each, because AbortSignal.any costs as much again.
 */
export class RequestSignals {
  readonly #controllers = new Set<AbortController>();
  readonly #stopping: () => AbortSignal;
  #follows = false; // of `stopping`, which is not there before the first request

  constructor(stopping: () => AbortSignal) {
    this.#stopping = stopping;
  }

  begin(): RequestSignal {
    const controller = new AbortController();
    return {
      signal: controller.signal,
      lasts: () => {
        if (!this.#follows) this.#follow();
        if (this.#stopping().aborted) controller.abort(STOPPING);
        else this.#controllers.add(controller);
      },
      end: () => {
        this.#controllers.delete(controller);
        controller.abort(OVER);
      },
    };
  }

  #follow(): void {
    this.#follows = true;
    this.#stopping().addEventListener("abort", () => {
      for (const controller of this.#controllers) controller.abort(STOPPING);
      this.#controllers.clear();
    }, { once: true });
  }
}

/** Made once: an error of its own for each request that ends would be most of what its signal costs. */
const OVER = new DOMException("the request is over", "AbortError");
const STOPPING = new DOMException("the server is stopping", "AbortError");
