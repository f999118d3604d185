import { useEffect, useState } from 'preact/hooks';
import { errorOf } from './error-of.ts';

export interface Loaded<Value> {
  /** Null: not yet. */
  value: Value | null;
  failure: Error | null;
  reload(): void;
}

/** What a request answers with. @param key another one begins again @param everyMs asks again while the page is visible; null: once */
export function useLoaded<Value>(key: string, load: () => Promise<Value>, everyMs: number | null = null): Loaded<Value> {
  const [state, setState] = useState<{ key: string; value: Value | null; failure: Error | null }>({ key, value: null, failure: null });
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const ask = async () => {
      if (document.hidden) return;
      try {
        const value = await load();
        if (isCurrent) setState({ key, value, failure: null });
      } catch (error) {
        if (isCurrent) setState((before) => ({ key, value: before.key === key ? before.value : null, failure: errorOf(error) }));
      }
    };
    void ask();
    const timer = everyMs === null ? null : setInterval(ask, everyMs);
    return () => {
      isCurrent = false;
      if (timer !== null) clearInterval(timer);
    };
  }, [key, count, everyMs]);
  const { value, failure } = state.key === key ? state : { value: null, failure: null };
  return { value, failure, reload: () => setCount((before) => before + 1) };
}
