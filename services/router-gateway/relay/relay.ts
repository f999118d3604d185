import type { FastifyReply } from 'fastify';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { FedCall, FeedDeps } from './frame-feed.ts';
import type { WholeResponse } from './whole-response.ts';

/** One call whose answer is on its way from a worker to a client. */
interface Relay {
  /**
   * The answer to send, or null when the socket needs nothing more from the route: the relay streams on it, or the client has left.
   * Rejects with the SwitchyardError that the call failed with before anything was sent.
   */
  response: Promise<WholeResponse | null>;
  /** Ends the call as failed, unless it has ended. */
  fail(error: SwitchyardError): void;
}

export interface RelayedCall extends FedCall {
  /** Id of the model that the request begins with, for errors of our own. */
  model: string;
  requestId: string;
  reply: FastifyReply;
}

/** Registers for the frames of a call, so that it may be put on the bus. */
export type OpenRelay = (deps: FeedDeps, call: RelayedCall) => Relay;
