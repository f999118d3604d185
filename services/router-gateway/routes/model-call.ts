import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Bus } from '#bus/bus.ts';
import type { ClientCall } from '#bus/messages/router.ts';
import type { Clock } from '#shared/clock.ts';
import { withDefaultPlugins } from '#shared/config/default-plugins.ts';
import type { Living } from '#shared/config/living.ts';
import { refuseUnconfigured } from '#shared/config/refuse-unconfigured.ts';
import { refuseUnreadTokens } from '#shared/config/refuse-unread-tokens.ts';
import type { Reservations } from '#shared/credit/reservations.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { parseJsonBodies } from '#shared/http-server/json-bodies.ts';
import { LoopBudget } from '#shared/loop-budget.ts';
import type { RateLimits } from '#shared/rates/rate-limits.ts';
import type { ModelRequest, RequestForm, Surface } from '#shared/surfaces/surface.ts';
import { traceparentOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Span, type Tracing } from '#shared/telemetry/tracing.ts';
import { type Admission, admitRequests, countedByAdmission } from '../admission.ts';
import { type CallSender, isRefusal, type OutgoingCall } from '../call-sender.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import { GenerationIds } from '../generation-ids.ts';
import { headerOf, IGNORED_HEADER } from '../ignored-fields.ts';
import { type AllowedCall, allowCall, isLimited } from '../key-admission.ts';
import type { GatewayLimits } from '../limits.ts';
import { errorReply } from '../plugins/error-reply.ts';
import { validation } from '../plugins/validation.ts';
import { relayBody } from '../relay/body-relay.ts';
import type { CallReaders } from '../relay/call-readers.ts';
import type { DetachedCalls } from '../relay/detached-calls.ts';
import type { Relay } from '../relay/relay.ts';
import { relayStream } from '../relay/sse-relay.ts';
import { sendWhole } from '../relay/whole-response.ts';
import { boundsOf, excessOf } from '../request-bounds.ts';
import { lastEventIdOf, positionOf, resumeCall } from './resume-generation.ts';

/** Of a request whose answer is to state where it went. */
const METADATA_HEADER = 'x-openrouter-metadata';
/** Of a key without limits. */
const UNLIMITED = { maxTokens: null };

declare module 'fastify' {
  interface FastifyRequest {
    /** As it came, in UTF-8; null before parsing and once released. */
    bodyBytes: Buffer | null;
  }
}

export interface ModelCallDeps {
  setup: Living<Pick<GatewaySetup, 'config' | 'hash' | 'ignoredIn' | 'longestTotalMs' | 'models' | 'rules'>>;
  admission: Admission;
  readers: CallReaders;
  sender: CallSender;
  bus: Bus;
  houseSecret: string;
  /** Of keys with a credit limit; null: there is no database. */
  reservations: Reservations | null;
  rates: RateLimits;
  /** Calls whose client has left, and which go on. */
  detached: DetachedCalls;
  clock: Clock;
  deadlines: Deadlines;
  log: Log;
  limits: GatewayLimits;
  tracing?: Tracing;
  metrics: Metrics;
}

/** An API that clients have: a row of `shared/surfaces/surfaces.ts`. */
export interface PublicSurface {
  name: string;
  surface: Surface;
  form: RequestForm;
}

/** Sends a call of the API to a worker and relays the response. */
export function modelCall({ name, surface, form }: PublicSurface, deps: ModelCallDeps): FastifyPluginAsyncZod {
  const { admission, bus, clock, readers, houseSecret, limits, sender } = deps;
  const refuseWork = preparedRefusal(overloaded(limits), errorReply);
  // Of all prefixes together.
  const loop = new LoopBudget();
  const ids = new GenerationIds({ houseSecret, origin: readers.origin });
  const bounds = { ...limits, bodyValues: form.maxValues ?? limits.bodyValues };
  return async (app) => {
    admitRequests(app, admission, limits.bodyBytes, (request, reply) => {
      // Resumes are exempt: they start no new call.
      const isAdmitted = lastEventIdOf(request.headers) !== null || (loop.admits() && hasCapacity(bus));
      if (!isAdmitted) refuseWork(reply);
      return isAdmitted;
    });
    app.decorateRequest('bodyBytes', null);
    parseJsonBodies(app, {
      limitBytes: limits.bodyBytes,
      ...countedByAdmission,
      mayBeEmpty: false,
      bounded: boundsOf(bounds),
      // A byte order mark may stand before JSON but not inside the call's JSON, which this body becomes a part of.
      onBody: (request, body) => {
        request.bodyBytes = body;
      },
    });
    app.addHook('preValidation', ({ body }, _, done) => {
      const excess = excessOf(body, bounds);
      done(excess === null ? undefined : invalid('', excess));
    });

    app.setValidatorCompiler(validation.compilerUnless(form.isValid));
    app.post(form.path, { schema: { body: form.schema } }, async (request, reply) => {
      const lastEventId = lastEventIdOf(request.headers);
      if (lastEventId !== null) {
        releaseBody(request);
        request.admitted?.bodyDone();
        // Clients that reconnect post the same request again: a new call would run, and be billed, beside the first.
        return resumeCall(deps, { position: positionOf(lastEventId), surface }, request, reply);
      }
      const setup = deps.setup.current();
      const embedding = form.toEmbeddingCall?.(request.body) ?? null;
      const use = embedding === null ? 'chat' : 'vectors';
      const given = withSession(form.toModelRequest(request.body), request.headers['x-session-id'], limits);
      const chat = given.debug === undefined || setup.config.debug_echo ? given : withoutDebug(given);
      // For what the gateway checks. The worker gets the request as given, and does the same.
      const suffixed = setup.models.withSuffixEffects(given, use);
      const asked = withDefaultPlugins(suffixed, setup.rules.of(request.keyId).plugins, use);
      const names = form.ignoredNames?.(request.body) ?? [];
      const ignored =
        embedding === null
          ? setup.ignoredIn(suffixed, {
              otherNames: names,
              asked: setup.models.allKnown(suffixed, use),
              isReserved: request.callerKey !== null && request.callerKey.limitNano !== null,
            })
          : headerOf(names, form.ignoredPlugins?.(request.body));
      if (ignored !== null) reply.header(IGNORED_HEADER, ignored);
      if (asked.plugins !== undefined) refuseUnconfigured(asked, { ...setup.config.plugins, ocr: setup.config.plugins.file_parser?.ocr });
      if (embedding !== null) refuseUnreadTokens(asked, embedding);
      const model = setup.models.firstKnown(chat, use);
      if (!bus.isReady()) throw unavailable('the bus is not reachable', limits);

      const nowMs = clock.nowMs();
      const callId = ids.next(request.keyId, nowMs);
      const deadlineAtMs = nowMs + setup.config.timeouts.total_ms;
      reply.header('x-generation-id', callId);
      const isDetached = request.headers['x-detach'] === 'true';
      const { callerKey } = request;
      const newCall = { setup, callId, deadlineAtMs, request: asked, embedding };
      // no fail point: inside
      const allowed = callerKey === null || !isLimited(callerKey) ? null : await allowCall(newCall, callerKey, deps);
      let relay: Relay | null = null;
      if (allowed !== null) {
        const onClose = () => {
          // A detached call goes on, whether its client left or its relay failed.
          if (isDetached && relay?.isOver() === false) deps.detached.follow({ callId, deadlineAtMs, ...allowed });
          else allowed.end();
        };
        if (!whileConnected(reply, allowed, onClose)) return sendWhole(reply, null, limits);
      }
      const publishing = publishSpan(deps, callId, traceparentOfRequest(request));
      const call: ClientCall = {
        v: 1,
        callId,
        origin: readers.origin,
        want: chat.stream === true ? 'frames' : 'body',
        surface: name,
        deadlineAtMs,
        createdAtMs: nowMs,
        detached: isDetached,
        republished: false,
        keyId: request.keyId,
        traceparent: publishing.traceparent,
        ...(setup.hash !== '' && { admittedUnder: setup.hash }),
        ...(allowed === null ? UNLIMITED : allowed.fields),
        ...(embedding !== null && { embedding }),
        ...(embedding === null && request.headers[METADATA_HEADER] === 'enabled' && { routerMetadata: true }),
      };
      const asGiven = chat === request.body ? request.bodyBytes : null;
      let outgoing: OutgoingCall;
      try {
        const sent = { value: chat, asGiven, givenBytes: request.bodyBytes?.byteLength ?? 0 };
        outgoing = sender.begin(call, sent, () => request.admitted?.bodyDone());
      } catch (error) {
        allowed?.release();
        allowed?.end();
        publishing.end(failureOf(error).code);
        throw error;
      }
      releaseBody(request);
      // The reader first: a worker's frames may arrive before the bus confirms the publish.
      const openRelay = call.want === 'frames' ? relayStream : relayBody;
      const opened: Relay = openRelay(deps, {
        callId,
        surface,
        model,
        failures: setup.config.errors,
        deadlineAtMs,
        isDetached,
        outgoing,
        requestId: request.id,
        reply,
      });
      relay = opened;
      const fail = (error: unknown, isUnsent: boolean) => {
        // Else a worker may have it: its record ends the reservation.
        if (isUnsent) allowed?.release();
        allowed?.end();
        opened.withdraw(error instanceof SwitchyardError ? error : unavailable('the call could not be published', limits, error));
      };
      outgoing.send(fail).then(
        () => publishing.end(),
        (error: unknown) => {
          publishing.end(failureOf(error).code);
          fail(error, isRefusal(error));
        },
      );
      failPoint('call.sent');
      // no fail point: waits
      return sendWhole(reply, await opened.response, limits);
    });
  };
}

/**
 * @param onClose called with the end of the response
 * @returns false when the client has left already, whose relay would never learn of it: the call has ended then
 */
function whileConnected({ raw }: FastifyReply, allowed: AllowedCall, onClose: () => void): boolean {
  if (raw.destroyed) {
    allowed.release();
    allowed.end();
    return false;
  }
  raw.on('close', onClose);
  return true;
}

/** The rest of the capacity is for results of admitted calls. An unreachable bus is reported with its own error. */
function hasCapacity(bus: Bus): boolean {
  return !bus.isReady() || bus.hasCapacity('router.call');
}

/** The request would retain it until the response ends. */
function releaseBody(request: Pick<FastifyRequest, 'body' | 'bodyBytes'>): void {
  request.body = undefined;
  request.bodyBytes = null;
}

/** Parent of the worker's spans; ends when the call is sent, long before the response. */
function publishSpan({ tracing = noTracing }: ModelCallDeps, callId: string, parent: string): Span {
  const attributes = {
    'messaging.system': 'nats',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'router.call',
    'messaging.message.id': callId,
  };
  return tracing.begin('publish router.call', { kind: 'producer', scope: 'switchyard.messaging', parent, attributes });
}

/** The body's session id wins over the header's. @throws `request.invalid` when the header's is used and too long */
function withSession(chat: ModelRequest, header: string | string[] | undefined, { sessionIdLength }: GatewayLimits): ModelRequest {
  if (chat.session_id !== undefined || typeof header !== 'string') return chat;
  if (header.length > sessionIdLength) throw invalid('x-session-id', `x-session-id must have at most ${sessionIdLength} characters`);
  return { ...chat, session_id: header };
}

function withoutDebug({ debug: _, ...chat }: ModelRequest): ModelRequest {
  return chat;
}

function invalid(param: string, message: string): SwitchyardError {
  return new SwitchyardError('request.invalid', message, { details: { param } });
}

function overloaded({ retryAfterMs }: GatewayLimits): SwitchyardError {
  return new SwitchyardError('service.overloaded', 'too many calls are waiting', { details: { retryAfterMs } });
}

function unavailable(message: string, { retryAfterMs }: GatewayLimits, cause?: unknown): SwitchyardError {
  return new SwitchyardError('service.not_ready', message, { cause, details: { retryAfterMs } });
}
