import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { readFrame } from '#bus/messages/frame.ts';
import type { EventPosition } from '#bus/messages/ordered-frames.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Living } from '#shared/config/living.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { readGenerationId } from '#shared/generation-id.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { within } from '#shared/within.ts';
import type { Admission } from '../admission.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import { type FeedDeps, NOTHING_TO_RESUME, noAnswer } from '../relay/frame-feed.ts';
import { relayStream } from '../relay/sse-relay.ts';
import { sendWhole } from '../relay/whole-response.ts';

interface GenerationParams {
  generation_id: string;
}

export interface ResumeDeps extends FeedDeps {
  admission: Admission;
  houseSecret: string;
  setup: Living<Pick<GatewaySetup, 'config' | 'longestTotalMs'>>;
}

/** Event id: `<generation>.<attempt>.<seq>`, followed by `.<n>` for the n-th event of a frame after the first. */
const EVENT_ID = /^([^.]{1,128})\.(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?$/;
const PATH = '/generations/:generation_id/stream';
/** Only errors of the gateway name it. */
const MODEL_UNKNOWN = 'unknown';

/**
 * GET /generations/:generation_id/stream resumes a stream at any gateway: events behind `Last-Event-ID`, or all without that header.
 * 404 for an id that is unknown, another key's, or past retention; 204 when nothing is left. HEAD says whether frames are retained, and reads none: no call
 * begins or ends with it.
 */
export function resumeGeneration(deps: ResumeDeps): FastifyPluginAsync {
  return async (app) => {
    const enter = ({ raw }: FastifyReply) => {
      const { leave } = deps.admission.enter(0);
      raw.once('close', leave);
    };
    app.get<{ Params: GenerationParams }>(PATH, { exposeHeadRoute: false }, async (request, reply) => {
      enter(reply);
      return resumeCall(deps, { position: askedPosition(request), surface: null }, request, reply);
    });
    // Not as a reader: interest in a call that begins and ends with this request could end the call.
    app.head<{ Params: GenerationParams }>(PATH, async (request, reply) => {
      enter(reply);
      const { callId, generation } = ownCall(deps, askedPosition(request), request);
      const subject = subjectOf(addresses.tokens, generation.origin, callId);
      const last = (await within(deps.limits.replayMs, deps.bus.tokens.replay(subject), noAnswer)).at(-1);
      if (last === undefined) throw nothingToResume();
      reply.header('x-generation-id', callId);
      const frame = readFrame(callId, last);
      if (frame?.kind === 'body') reply.code(frame.status).type('application/json');
      else reply.type('text/event-stream');
      return reply.send();
    });
  };
}

/** Null when the given id is invalid, or names another generation. */
function askedPosition({ headers, params: { generation_id: generationId } }: FastifyRequest<{ Params: GenerationParams }>): ResumePosition | null {
  const given = lastEventIdOf(headers);
  if (given === null) return { generationId, after: null };
  const position = positionOf(given);
  return position?.generationId === generationId ? position : null;
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
  const { callId, after, generation } = ownCall(deps, position, request);
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

/** @throws `request.not_found` for an id that is invalid, or another key's */
function ownCall({ houseSecret }: Pick<ResumeDeps, 'houseSecret'>, position: ResumePosition | null, { keyId }: Pick<FastifyRequest, 'keyId'>) {
  const generation = position && readGenerationId(position.generationId, { houseSecret, keyId });
  if (position === null || generation === null) throw nothingToResume();
  const { generationId: callId, after } = position;
  return { callId, after, generation };
}

function nothingToResume(): SwitchyardError {
  return new SwitchyardError('request.not_found', NOTHING_TO_RESUME);
}
