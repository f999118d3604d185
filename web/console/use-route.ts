import { useEffect, useState } from 'preact/hooks';

/** The parts of the address behind `#/`, decoded. */
function useRoute(): readonly string[] {
  const [route, setRoute] = useState(routeNow);
  useEffect(() => {
    const change = () => setRoute(routeNow());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

/** The parts of the address, of which the first is a section: the first of all, if there is none of that name. */
export function useSection(sections: readonly (readonly [string, string])[]): readonly string[] {
  const route = useRoute();
  return sections.some(([part]) => part === route[0]) ? route : sections.slice(0, 1).map(([part]) => part);
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
