import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import { askingWith } from './asking.ts';
import { listing } from './listing.ts';
import type { ToolUser } from './tool-user.ts';
import { tooling, toolReplies } from './tooling.ts';
import { windingUp } from './winding-up.ts';

/**
 * The loop of a model and its tools, as states of the user's machine:
 *
 *   listing ──tools.listed──▶ asking ──a reply that ends the loop──▶ the user's `ended`
 *                              │  ▲ └──a reply to stage, or only refused tools──▶ asking (next iteration)
 *                              │  ├─┴──unusable reply, an event that joins──▶ asking (same iteration)
 *                         tools│  │
 *                              ▼  │the last of the batch has settled (next iteration)
 *                            tooling
 *
 *   asking ──the last iteration's reply does not end the loop──▶ the user's `spent`
 *   any    ──a server unavailable, call.failed, no model gave a usable reply──▶ the user's `failed`
 *   tooling ──the interruption of `windUp`, with calls that it keeps──▶ windingUp ──the last of them has settled──▶ the user's `failed`
 *   any    ──an interruption (deadline, cancel)──▶ as the user says; the awaited effects are superseded
 *
 * An unusable reply does not count as an iteration. Tool calls of the last iteration are not made, since no model call would read their results.
 *
 * States and context are flat: they are part of the user's snapshots.
 */
export function toolLoop<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>(
  user: ToolUser<Context, Event, Reply, Named>,
) {
  return { listing: listing(user), asking: askingWith(user, toolReplies(user)), tooling: tooling(user), windingUp: windingUp(user) };
}
