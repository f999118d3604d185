import type { CommandOf, ResultType } from '#bus/messages/session.ts';
import type { DerivedTimer, EffectKind, Opening } from './effect-kind.ts';
import type { CommonInputs, EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

/** Look-ups in the rows of registry.ts. */
export class EffectTable {
  readonly kinds: readonly EffectKind[];
  readonly #byName: ReadonlyMap<string, EffectKind>;
  readonly #byRequest: ReadonlyMap<string, EffectKind>;
  readonly #byResult: ReadonlyMap<string, EffectKind>;

  /** @throws TypeError when two rows have the same name, or one actor two rows for the same request or result */
  constructor(kinds: readonly EffectKind[]) {
    this.kinds = kinds;
    this.#byName = keyed(kinds.map((kind) => [kind.name, kind]));
    this.#byRequest = keyed(kinds.map((kind) => [`${kind.actor} ${kind.request}`, kind]));
    this.#byResult = keyed(kinds.flatMap((kind) => Object.keys(kind.results).map((type) => [`${kind.actor} ${type}`, kind])));
  }

  /** @throws TypeError for an unknown name */
  kind(name: string): EffectKind {
    return this.#byName.get(name) ?? unknown(`'${name}'`);
  }

  /** What an actor's machine opens by an action. @throws TypeError when that actor opens no such effect */
  opened(actor: string, request: { kind: string }, opening: Opening): { kind: string; inputs: CommonInputs } {
    const kind = this.#byRequest.get(`${actor} ${request.kind}`) ?? unknown(`'${request.kind}' of a ${actor}`);
    return { kind: kind.name, inputs: kind.inputsOf(request as never, opening) };
  }

  /** A result, or its absence, as an event of an actor's machine; null when that actor awaits no such result. */
  eventOf<Scope, Event>(actor: string, command: CommandOf<ResultType | 'effect.overdue'>, scope: Scope): Event | null {
    if (command.type === 'effect.overdue') {
      const kind = this.kind(command.kind);
      return kind.actor !== actor || kind.overdue === 'report' ? null : (kind.overdue(command, scope as never) as Event);
    }
    const read = this.#byResult.get(`${actor} ${command.type}`)?.results[command.type];
    return read === undefined ? null : Reflect.apply(read, null, [command, scope]);
  }

  /** What a host that takes over arms for an open effect. */
  timersOf(effect: EffectRow): (DerivedTimer & { partition: number })[] {
    const timer = this.kind(effect.kind).timerOf?.(effect);
    return timer === undefined ? [] : [{ partition: effect.partition, ...timer }];
  }

  /** The work item as JSON. Rows that were read are parsed, those of this process are not. */
  async render(effect: EffectRow, republished: boolean, deps: RenderDeps): Promise<string> {
    const kind = this.kind(effect.kind);
    const row = republished ? { ...effect, inputs: kind.inputs.parse(effect.inputs) } : effect;
    return JSON.stringify(await kind.render(row, republished, deps));
  }
}

function keyed(rows: readonly (readonly [string, EffectKind])[]): ReadonlyMap<string, EffectKind> {
  const map = new Map(rows);
  if (map.size !== rows.length) throw new TypeError('two kinds of effects share a name, a request or a result');
  return map;
}

function unknown(what: string): never {
  throw new TypeError(`there is no kind of effect ${what}`);
}
