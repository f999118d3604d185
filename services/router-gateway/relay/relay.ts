import type { FastifyReply } from 'fastify';
import type { FailureEvent } from '#shared/contracts/router/response-object.ts';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import type { FedCall, FeedDeps } from './frame-feed.ts';
import type { WholeResponse } from './whole-response.ts';

export interface Relay {
  /**
   * The response to send; null when the relay has taken over the socket or the client has left.
   * Rejects with the SwitchyardError of a call that failed before anything was sent.
   */
  response: Promise<WholeResponse | null>;
  /** Fails the call, which could not be sent, unless it has ended. */
  withdraw(error: SwitchyardError): void;
  /** Whether the call has ended, as far as the relay knows, or was withdrawn. */
  isOver(): boolean;
}

export interface RelayedCall extends FedCall {
  /** For errors of the gateway. Null: its events say it. */
  surface: Surface | null;
  /** For errors of the gateway. */
  model: string;
  /** `errors` of the router's file. */
  failures: FailureEvent;
  requestId: string;
  reply: FastifyReply;
}

/** Subscribes to the frames of a call; only then may the call be sent. */
export type OpenRelay = (deps: FeedDeps, call: RelayedCall) => Relay;
