import type { EventWebhookAddress } from '../../inputs/actor-inputs.ts';

export interface EventWebhookContext {
  /** The session's own address; null: the deployment's. */
  url: string | null;
  /** False: nothing is posted, and the cursor stays. */
  isOn: boolean;
  /** Offset of the next event to post: each earlier one is posted, given up, or left out. */
  cursor: number;
  /** Failed attempts of the event at the cursor. */
  attempts: number;
  /** Since when that event waits, after a failed attempt or a pause; epoch ms. */
  waitingSinceMs: number | null;
  /** The latest round; null before the first. */
  roundId: string | null;
  /** The address or the cursor was set during the round: its report moves nothing. */
  isMoved: boolean;
  /** The session is deleted once its last event is settled. */
  isLast: boolean;
  /** The configuration whose key the posts carry. */
  bundleHash: string;
}

export type EventWebhookInput = Pick<EventWebhookContext, 'url' | 'isOn' | 'cursor' | 'bundleHash'>;

/** What a transition needs of the session and its host. */
export interface Scene {
  /** Time of application, epoch ms. */
  atMs: number;
  /** Number of events, so the next offset. */
  head: number;
  /** Null: none. */
  deployment: EventWebhookAddress | null;
  /** Of the round that the event may open. */
  nextRoundId: string;
}

/** `roundId` exposes late and repeated reports. `nextOffset`: every event of the round before it is posted. */
export type EventWebhookEvent =
  | ({ scene: Scene } & (
      | { type: 'events.appended'; first: number; kinds: readonly string[]; bundleHash: string | null }
      /** `url` null: off. `fromOffset` null: the cursor stays. */
      | { type: 'webhook.set'; url: string | null; fromOffset: number | null; bundleHash: string }
      | { type: 'round.posted'; roundId: string; nextOffset: number }
      /** An attempt for the event at `nextOffset`. `retryAfterMs`: as the receiver asks, null when it does not. `chance`: between 0 and 1. */
      | ({ type: 'round.failed'; roundId: string; nextOffset: number; maxAttempts: number; reason: string | null } & Pause)
      /** Nothing was posted for the event at `nextOffset`. */
      | ({ type: 'round.postponed'; roundId: string; nextOffset: number } & Pause)
      /** No report: the item or its report was lost. */
      | { type: 'round.overdue'; roundId: string }
      | { type: 'retry.due'; roundId: string }
    ))
  /** The session is to be deleted after its last event. */
  | { type: 'session.ended' }
  /** The session is being deleted, with its events. */
  | { type: 'session.erased' };

interface Pause {
  retryAfterMs: number | null;
  chance: number;
}

/** Executed by the runtime, in this order, in one commit. */
export interface EventWebhookActions {
  /** Opens a round: the events of `fromOffset` up to, not including, `toOffset`. */
  effect: {
    kind: 'event-delivery';
    id: string;
    deadlineAtMs: number;
    url: string;
    /** Null: all. */
    kinds: readonly string[] | null;
    fromOffset: number;
    toOffset: number;
    attempts: number;
    waitingSinceMs: number | null;
  };
  close: { id: string; state: 'done' | 'superseded' };
  timer: {
    key: string;
    atMs: number;
    command: { type: 'event-webhook.due'; roundId: string } | { type: 'effect.overdue'; callId: string; kind: 'event-delivery' };
  };
  disarm: { key: string };
  /** Makes the event at `offset` a dead letter. */
  giveUp: { offset: number; reason: string | null };
  /** Deletes an ephemeral session. */
  endSession: Record<string, never>;
}
