# A notification service of a desktop: prints each notification, and presses the button that a line of its input names.
import sys
import dbus, dbus.mainloop.glib, dbus.service
from gi.repository import GLib

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()


class Service(dbus.service.Object):
    last = 0

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, summary, body, actions, hints, timeout):
        self.last += 1
        print("notified", summary, "|", body.replace("\n", " / "), "|", ",".join(actions), flush=True)
        return self.last

    @dbus.service.method(NAME, out_signature="as")
    def GetCapabilities(self):
        return ["body", "body-markup"] + (["actions"] if sys.argv[1] == "buttons" else [])

    @dbus.service.method(NAME, out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "test", "1", "1.2")

    @dbus.service.method(NAME, in_signature="u")
    def CloseNotification(self, number):
        self.NotificationClosed(number, 3)

    @dbus.service.signal(NAME, signature="us")
    def ActionInvoked(self, number, action):
        pass

    @dbus.service.signal(NAME, signature="uu")
    def NotificationClosed(self, number, reason):
        pass


service = Service(bus, PATH)
name = dbus.service.BusName(NAME, bus)


def typed(*_):
    word = sys.stdin.readline().strip()
    if not word:
        return False
    if word != "close":
        service.ActionInvoked(service.last, word)
    service.NotificationClosed(service.last, 2)
    return True


GLib.io_add_watch(sys.stdin, GLib.IO_IN, typed)
print("serving", flush=True)
GLib.MainLoop().run()
