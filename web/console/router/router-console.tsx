import { useState } from 'preact/hooks';
import { Shell } from '../shell.tsx';
import { Traces } from '../traces.tsx';
import { useSection } from '../use-route.ts';
import { Generations } from './generations.tsx';
import { KeyForm } from './key-form.tsx';
import { Keys } from './keys.tsx';
import { Models } from './models.tsx';
import type { RouterApi } from './router-api.ts';

const SECTIONS = [
  ['models', 'Models'],
  ['keys', 'Keys'],
  ['generations', 'Generations'],
  ['traces', 'Traces'],
] as const;

/** Asks for a management key, which a reload forgets. */
export function RouterConsole({ title }: { title: string }) {
  const [section = '', ...rest] = useSection(SECTIONS);
  const [api, setApi] = useState<RouterApi | null>(null);
  const forget = api !== null && (
    <button type="button" class="quiet" onClick={() => setApi(null)}>
      Forget the key
    </button>
  );
  return (
    <Shell title={title} sections={api === null ? [] : SECTIONS} current={section} action={forget}>
      {api === null && <KeyForm onKey={setApi} />}
      {api !== null && section === 'models' && <Models api={api} modelId={rest.length === 0 ? null : rest.join('/')} />}
      {api !== null && section === 'keys' && <Keys api={api} />}
      {api !== null && section === 'generations' && <Generations api={api} generationId={rest[0] ?? null} />}
      {api !== null && section === 'traces' && <Traces source={api.traces()} traceId={rest[0] ?? null} />}
    </Shell>
  );
}
