import { z } from 'zod';
import type { WorkKind } from '#bus/bus.ts';
import type { CommandOf, ResultType } from '#bus/messages/session.ts';
import type { CarriedContext } from '#shared/telemetry/carried-context.ts';
import type { CommonInputs, EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

/** What an actor knows when it opens an effect. */
export interface Opening {
  actorId: string;
  /** Empty for a delivery, whose row names it. */
  bundleHash: string;
  traceparent: string | null;
  /** Of a turn. Absent: its caller sent nothing beside `traceparent`. */
  carried?: CarriedContext | undefined;
  /** Offset of the session's last event. */
  lastOffset: number;
  /** Of the session; null: it is being created. */
  customerId: string | null;
}

/**
 * One kind of effect: all that the runtime and the actors need to know of it. A new one is a file of this folder and a row of registry.ts.
 *
 * `Request` are the parameters of the machine's action, `Scope` what the actor knows beside its state when a result comes, `Event` the events of its
 * machine.
 */
export interface EffectKind<Inputs extends CommonInputs = CommonInputs, Request = never, Scope = never, Event = unknown> {
  /** `effects.kind`. Stored. */
  readonly name: string;
  /** Name of the kind of actor that opens it. */
  readonly actor: string;
  /** `kind` in the action by which the actor's machine opens it. */
  readonly request: string;
  /** The queue of its items. */
  readonly work: WorkKind;
  /** Rows of earlier releases fit it, too. */
  readonly inputs: z.ZodType<Inputs>;
  inputsOf(request: Request, opening: Opening): Inputs;
  /**
   * The work item. Reads only immutable data, so that a host that takes over renders the same; but what prompts know of the customer may have changed (ADR 91).
   * @param republished the item may have been on the bus before: the worker checks the effect's row first
   */
  render(effect: EffectRow<Inputs>, republished: boolean, deps: RenderDeps): object | Promise<object>;
  /** The commands that bring its result, each as an event of the actor's machine. */
  readonly results: { readonly [Type in ResultType]?: (command: CommandOf<Type>, scope: Scope) => Event };
  /**
   * How the wait for a lost item ends. `report`: by the actor's own deadline; an item that can't be published before its deadline is reported as
   * `call.failed`. Otherwise by a timer of its own, whose command `effect.overdue` becomes this event.
   */
  readonly overdue: 'report' | ((command: CommandOf<'effect.overdue'>, scope: Scope) => Event);
  /** A timer for as long as it is open, which a host that takes over arms. Absent: its actor stores what it needs. */
  timerOf?(effect: EffectRow): DerivedTimer;
}

/** A timer without a row of its own. */
export interface DerivedTimer {
  key: string;
  dueAtMs: number;
  /** JSON. */
  command: string;
}

/** Of prompts about a conversation. Absent in rows of releases before: their prompts have no name and no variables. */
export const customerInput = { customerId: z.string().optional() };

/** Undefined: the session is being created. */
export function customerOf({ customerId }: Opening): string | undefined {
  return customerId ?? undefined;
}

/** Fields of each schema of inputs. */
export const commonInputs = { deadlineAtMs: z.number(), traceparent: z.string().nullable() };
