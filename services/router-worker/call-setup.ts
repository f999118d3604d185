import type { RouterCall } from '#bus/messages/router.ts';
import { pauseFor } from '#bus/pause.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import { refuseUnconfigured } from '#shared/config/refuse-unconfigured.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { candidatesFor } from './call/candidates.ts';
import { askedOf } from './call/choice.ts';
import { configuredSpeeds } from './call/health-view.ts';
import { withoutReadFiles } from './pipeline/files/file-items.ts';
import type { RouterSetup } from './router-setup.ts';
import type { Setups } from './setups.ts';

/**
 * How long each delivery of a call waits here for a configuration that is not known yet, and without which it cannot be served; then it is given back, for
 * another worker may have read the file. About a minute in all: so far apart may the nodes of a cluster update a mounted file. The last delivery does not wait.
 */
const WAITS_MS = [1_000, 5_000, 20_000, 40_000];

interface CallSetupDeps {
  setups: Setups;
  log: Log;
  /** For tests. */
  waitsMs?: readonly number[];
}

/**
 * The setup that a call runs under: that of the configuration that it was admitted under. Where this worker does not know it, as between two reloads and after
 * a restart, the current one, if it can serve the call.
 * @returns a promise only for a call that waits; `again`: it is given back
 */
export function setupOf(call: RouterCall, running: RunningItem, deps: CallSetupDeps): RouterSetup | Promise<RouterSetup | 'again'> {
  const { setup, isKnown } = enterSetup(call, running, deps);
  return isKnown || isServable(call, setup) ? setup : awaited(call, running, deps);
}

async function awaited(call: RouterCall, running: RunningItem, deps: CallSetupDeps): Promise<RouterSetup | 'again'> {
  const { setups, log, waitsMs = WAITS_MS } = deps;
  const waitMs = waitsMs[running.delivery - 1];
  const facts = { call_id: call.callId, admitted_under: call.admittedUnder, delivery: running.delivery };
  if (waitMs !== undefined) {
    const arrived = new AbortController();
    const unregister = setups.onReplaced(() => {
      const { setup, isKnown } = setups.find(call.admittedUnder);
      if (isKnown || isServable(call, setup)) arrived.abort();
    });
    await pauseFor(waitMs, AbortSignal.any([arrived.signal, running.signal]));
    unregister();
    if (!arrived.signal.aborted && !running.signal.aborted) {
      log.warn(facts, 'a call needs a configuration that this worker has not read: it is given back');
      return 'again';
    }
  } else log.warn(facts, 'a call needs a configuration that no worker has read in time: the current one decides');
  return enterSetup(call, running, deps).setup;
}

/** Until the item is released. Where the hash is not known, the current one. */
export function enterSetup({ admittedUnder }: RouterCall, running: RunningItem, { setups }: CallSetupDeps): { setup: RouterSetup; isKnown: boolean } {
  const { setup, isKnown, leave } = setups.enter(admittedUnder);
  running.onRelease(leave);
  return { setup, isKnown };
}

/** Whether the configuration has the engines of the call's plugins, and candidates for it: as its execution decides. */
function isServable(call: RouterCall, { catalogue, engines }: RouterSetup): boolean {
  const { callId, keyId, maxTokens, reserved, embedding } = call;
  const circumstances = { catalogue, rules: catalogue.rules.of(keyId), health: configuredSpeeds, stickyTo: null, seed: callId };
  try {
    const request = askedOf(call, catalogue);
    refuseUnconfigured(request, engines);
    return candidatesFor({ request: withoutReadFiles(request), maxTokens, reserved, embedding }, circumstances).candidates.length > 0;
  } catch {
    return false;
  }
}
