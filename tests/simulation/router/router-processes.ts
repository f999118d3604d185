import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Bus } from '../../../bus/bus.ts';
import { CallSender } from '../../../services/router-gateway/call-sender.ts';
import { gatewaySetup } from '../../../services/router-gateway/gateway-setup.ts';
import { gatewayLimits } from '../../../services/router-gateway/limits.ts';
import { CallReaders } from '../../../services/router-gateway/relay/call-readers.ts';
import { DetachedCalls } from '../../../services/router-gateway/relay/detached-calls.ts';
import { type ModelCallDeps, modelCall } from '../../../services/router-gateway/routes/model-call.ts';
import { type RouterWorkerDeps, startRouterWorker } from '../../../services/router-worker/service.ts';
import type { Clock } from '../../../shared/clock.ts';
import { fixed } from '../../../shared/config/living.ts';
import { Reservations } from '../../../shared/credit/reservations.ts';
import { Deadlines } from '../../../shared/deadlines.ts';
import { RateLimits } from '../../../shared/rates/rate-limits.ts';
import type { Cache } from '../../../shared/storage/cache.ts';
import type { Database } from '../../../shared/storage/database.ts';
import type { RequestForm } from '../../../shared/surfaces/surface.ts';
import { surfaces } from '../../../shared/surfaces/surfaces.ts';
import { silentLog } from '../../../shared/telemetry/log.ts';
import { noMetrics } from '../../../shared/telemetry/metrics.ts';
import type { Process } from '../scheduler.ts';
import { config, keys } from './router-setup.ts';
import type { SimulatedProviders } from './simulated-provider.ts';

const SURFACE = 'chat-completions';
/** Of each kind. Few, so that some dispatched calls find no free slot. */
const CONCURRENCY = 3;
const BODY_BYTES = 1_000_000;

export interface RouterFooting {
  process: Process;
  bus: Bus;
  database: Database;
  /** Of gateways. */
  cache: Cache;
  clock: Clock;
  /** The database's. */
  databaseClock: Clock;
  providers: SimulatedProviders;
}

export type Handle = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** A router gateway, wired as in its service and app: the handler of its route, behind body parsing and authentication. */
export function gatewayOn({ process, bus, database, cache, clock }: RouterFooting): Handle {
  const surface = surfaces.get(SURFACE);
  if (surface?.request == null) throw new TypeError(`there is no surface ${SURFACE}`);
  const shared = { bus, clock, log: silentLog, metrics: noMetrics, limits: gatewayLimits };
  const deadlines = new Deadlines();
  const readers = new CallReaders({ ...shared, origin: process.id.replace('-', '') });
  const deps = {
    ...shared,
    ...{ deadlines, readers },
    setup: gatewaySetup(fixed({ config, hash: '' }), {}),
    detached: new DetachedCalls({ ...shared, deadlines, readers }),
    sender: new CallSender({ ...shared, nowMs: () => performance.now() }),
    houseSecret: 'h',
    reservations: new Reservations({ ...shared, database }),
    rates: new RateLimits({ ...shared, cache }),
    // Its methods are called by hooks, which do not run here.
    admission: {},
  };
  return handlerOf(surface.request, deps as unknown as ModelCallDeps, surface);
}

/** Registers the route with an app that keeps its handler. */
function handlerOf(form: RequestForm, deps: ModelCallDeps, surface: NonNullable<ReturnType<typeof surfaces.get>>): Handle {
  const found: Handle[] = [];
  const app = {
    addHook: () => {},
    decorateRequest: () => {},
    setValidatorCompiler: () => {},
    addContentTypeParser: () => {},
    post: (_path: string, _options: unknown, handle: Handle) => found.push(handle),
  };
  const register = modelCall({ name: SURFACE, surface, form }, deps) as unknown as (given: typeof app) => Promise<void>;
  void register(app);
  const [handle] = found;
  if (handle === undefined) throw new TypeError('the route has no handler');
  return handle;
}

/** A router worker, as its service starts it, with the ledger. `openProviders` is replaced (load-router-simulation.ts) and finds the providers in the environment. */
export function routerWorkerOn({ process, bus, database, clock, databaseClock, providers }: RouterFooting): void {
  const fileKeys = new Map(Object.values(keys).map((key) => [key.hash, key]));
  const deps: RouterWorkerDeps = {
    ...{ config, bus, database, clock, fileKeys, cache: null, log: silentLog, metrics: noMetrics, actorClock: databaseClock },
    environment: { providers: providers.of(process) } as unknown as RouterWorkerDeps['environment'],
    concurrency: { clientCalls: CONCURRENCY, turnCalls: CONCURRENCY },
    bodyBytes: { clientCalls: BODY_BYTES, turnCalls: BODY_BYTES },
  };
  void startRouterWorker(deps);
}
