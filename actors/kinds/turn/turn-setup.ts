import { setup } from 'xstate';
import type { TurnActions, TurnContext, TurnEvent, TurnInput } from './types.ts';

export const turnSetup = setup({
  types: { input: {} as TurnInput, context: {} as TurnContext, events: {} as TurnEvent },
  actions: {
    // Only named here; kind.ts executes them.
    fact: (_, _params: TurnActions['fact']) => {},
    stage: (_, _params: TurnActions['stage']) => {},
    rememberPreamble: (_, _params: TurnActions['rememberPreamble']) => {},
    remember: (_, _params: TurnActions['remember']) => {},
    effect: (_, _params: TurnActions['effect']) => {},
    supersede: (_, _params: TurnActions['supersede']) => {},
    timer: (_, _params: TurnActions['timer']) => {},
    disarm: (_, _params: TurnActions['disarm']) => {},
  },
});

export type TurnAction = { [Type in keyof TurnActions]: { type: Type; params: TurnActions[Type] } }[keyof TurnActions];
