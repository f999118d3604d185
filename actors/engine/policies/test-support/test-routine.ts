import { type Routine, routine } from '#shared/contracts/documents/routine.ts';

/** For tests. Conversational, with one step. */
export function testRoutine(id: string, fields: { [Field in keyof Routine]?: unknown } = {}): Routine {
  return routine.parse({ id, version: 1, conditions: [`${id} is wanted`], steps: [{ kind: 'chat', id: 'one', chat_state: 'go on' }], ...fields });
}

export function autonomousRoutine(id: string, fields: { [Field in keyof Routine]?: unknown } = {}): Routine {
  return routine.parse({ kind: 'autonomous', id, version: 1, instructions: 'work', ...fields });
}
