import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { EventPosition } from '#bus/messages/ordered-frames.ts';
import type { Living } from '#shared/config/living.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { readGenerationId } from '#shared/generation-id.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import type { Admission } from '../admission.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import { type FeedDeps, NOTHING_TO_RESUME } from '../relay/frame-feed.ts';
import { relayStream } from '../relay/sse-relay.ts';
import { sendWhole } from '../relay/whole-response.ts';

export interface ResumeDeps extends FeedDeps {
  admission: Admission;
  houseSecret: string;
  setup: Living<Pick<GatewaySetup, 'config' | 'longestTotalMs'>>;
}

/** Event id: `<generation>.<attempt>.<seq>`, followed by `.<n>` for the n-th event of a frame after the first. */
const EVENT_ID = /^([^.]{1,128})\.(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?$/;
/** Only errors of the gateway name it. */
const MODEL_UNKNOWN = 'unknown';

/**
 * GET /generations/:generation_id/stream resumes a stream at any gateway: events behind `Last-Event-ID`, or all without that header.
 * 404 for an id that is unknown, another key's, or past retention; 204 when nothing is left.
 */
export function resumeGeneration(deps: ResumeDeps): FastifyPluginAsync {
  return async (app) => {
    app.get<{ Params: { generation_id: string } }>('/generations/:generation_id/stream', async (request, reply) => {
      const { leave } = deps.admission.enter(0);
      reply.raw.once('close', leave);
      const { generation_id: generationId } = request.params;
      const given = lastEventIdOf(request.headers);
      const position = given === null ? { generationId, after: null } : positionOf(given);
      if (position?.generationId !== generationId) throw nothingToResume();
      return resumeCall(deps, { position, surface: null }, request, reply);
    });
  };
}

/** Set on a resume, which starts no new call. */
export function lastEventIdOf({ 'last-event-id': given }: IncomingHttpHeaders): string | null {
  return typeof given === 'string' && given !== '' ? given : null;
}

/** Null for an id that is not ours. */
export function positionOf(eventId: string): ResumePosition | null {
  const [, generationId, attempt, seq, events = '1'] = EVENT_ID.exec(eventId) ?? [];
  return generationId === undefined ? null : { generationId, after: { attempt: Number(attempt), seq: Number(seq), events: Number(events) } };
}

export interface ResumePosition {
  generationId: string;
  /** Null: from the start. */
  after: EventPosition | null;
}

interface Resumed {
  /** Null when the given id is invalid. */
  position: ResumePosition | null;
  /** For errors of the gateway. Null: an id does not say it, and its events do. */
  surface: Surface | null;
}

/** @throws `request.not_found`, always with the same message */
export async function resumeCall(
  deps: ResumeDeps,
  { position, surface }: Resumed,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const generation = position && readGenerationId(position.generationId, { houseSecret: deps.houseSecret, keyId: request.keyId });
  if (position === null || generation === null) throw nothingToResume();
  const { generationId: callId, after } = position;
  reply.header('x-generation-id', callId);
  const { config, longestTotalMs } = deps.setup.current();
  const relay = relayStream(deps, {
    callId,
    surface,
    model: MODEL_UNKNOWN,
    failures: config.errors,
    deadlineAtMs: generation.atMs + longestTotalMs,
    isDetached: request.headers['x-detach'] === 'true',
    requestId: request.id,
    reply,
    resumed: { origin: generation.origin, after },
  });
  return sendWhole(reply, await relay.response, deps.limits);
}

function nothingToResume(): SwitchyardError {
  return new SwitchyardError('request.not_found', NOTHING_TO_RESUME);
}
