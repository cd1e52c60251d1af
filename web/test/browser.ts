// browser.ts - as much of a browser as the stores look at when they are loaded
function storage() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  };
}

for (const [name, value] of Object.entries({
  window: globalThis,
  sessionStorage: storage(),
  localStorage: storage(),
  location: { hash: "", protocol: "http:", host: "localhost" },
  document: {
    hidden: false,
    documentElement: { dataset: {} },
    querySelectorAll: () => [],
    querySelector: () => null,
  },
  addEventListener: () => undefined,
  navigator: { language: "en" },
  matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
  devicePixelRatio: 1,
  dispatchEvent: () => true,
  CustomEvent: Event,
  // Nothing may keep a test from ending.
  setInterval: () => 0,
}))
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
