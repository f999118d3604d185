import type { CallSignal } from '../../call-signal.ts';

/** The first text that must not be sent, and why: categories of the endpoint, or reasons of patterns. */
export interface Flagged {
  text: string;
  reasons: readonly string[];
}

export interface Moderator {
  /** `provider_name` of its refusals. */
  readonly name: string;
  /**
   * @param param the field of the request that has the texts
   * @returns null: none is flagged
   * @throws `router.plugin_unavailable`, `request.too_large` naming the field; the signal's reason after an abort
   */
  flaggedIn(texts: readonly string[], signal: CallSignal, param: string): Promise<Flagged | null>;
}

/** With connections. */
export interface OpenedModerator extends Moderator {
  close(): Promise<void>;
}
