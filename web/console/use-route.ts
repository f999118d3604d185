import { useEffect, useState } from 'preact/hooks';

/** The parts of the address behind `#/`, decoded. */
export function useRoute(): readonly string[] {
  const [route, setRoute] = useState(routeNow);
  useEffect(() => {
    const change = () => setRoute(routeNow());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

export function addressOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

function routeNow(): readonly string[] {
  return location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
